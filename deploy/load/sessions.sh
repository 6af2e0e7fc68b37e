#!/bin/sh
# Ten sessions a second, of 5 to 14 seconds each, written as any program would. LIFE is a file whose age shows that this goes on.
n=$(date +%s)0
while redis-cli -e -h redis SET "session:$n" alice EX "$((n % 10 + 5))" >/dev/null; do
  : >"$LIFE"
  n=$((n + 1))
  sleep 0.1
done
exit 1
