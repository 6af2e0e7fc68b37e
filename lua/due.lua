-- due v1: reads a page of watched keys that are due, in the order of their deadlines. Changes nothing.
-- KEYS    1 watched
-- ARGV    1 the most keys  2 how many of the first to pass over  3 those too that are due within so many ms
-- ANSWER  {number, {now ms, due ms of the first key behind the page or 0, then for each its member and due ms}}
-- Redis expires a key when the millisecond of its due is over: one of this very millisecond is not due.
-- A page ends at 1 MiB of names too, but has always one: there is more when what is behind it is due.
local now, limit, from, page, behind = clock(), tonumber(ARGV[1]), tonumber(ARGV[2]), nil, nil
local score, due -- the last one: many have the same
local bound, answer, bytes, n = now + ARGV[3], {now, 0}, 0, 0
repeat -- in steps, for names may be long
  page = redis.call('ZRANGE', KEYS[1], from + n, from + n + 99, 'WITHSCORES')
  for i = 1, #page, 2 do
    if page[i + 1] ~= score then score, due = page[i + 1], tonumber(due_text(page[i + 1])) end
    bytes = bytes + #page[i]
    if n == limit or due >= bound or n > 0 and bytes > 1048576 then
      behind = due
      break
    end
    n = n + 1
    answer[2 * n + 1], answer[2 * n + 2] = page[i], due
  end
until behind or #page < 200
answer[2] = behind or 0
return {n, answer}
