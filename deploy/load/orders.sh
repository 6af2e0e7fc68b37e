#!/bin/sh
# Five orders a second, each overdue within half a minute; half of them are paid before. LIFE is a file whose age shows that this goes on.
n=$(date +%s)0
while overdue schedule orders "order-$n" --in "$((n % 30 + 1))s" --payload "order $n"; do
  if [ $((n % 2)) -eq 0 ]; then
    # Exit code 1: it was overdue already.
    overdue cancel orders "order-$((n - 20))" || [ $? -eq 1 ] || exit
  fi
  : >"$LIFE"
  n=$((n + 1))
  sleep 0.2
done
exit 1
