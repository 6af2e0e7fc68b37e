-- fire v1: fires the given timers, those that are due: a notification named them.
-- KEYS    1 index  2 timers  3 stream  4 tally
-- ARGV    1 the most payload, bytes  2.. ids, at most 1,000
-- ANSWER  {fired, {side error, now ms, flawed, then for each id a word and its due ms or 0}}
--         words: FIRED  GONE (not armed)  EARLY (not due)  MORE (the page was full: ask again)
local now, us = clock()
local last = redis.call('HGET', KEYS[4], 'last')
redis.call('XLEN', KEYS[3])
redis.call('HLEN', KEYS[2])

local names, most = {unpack(ARGV, 2)}, tonumber(ARGV[1])
local found, answer, ids, dues, seen = scores_of(KEYS[1], names), {side, now, 0}, {}, {}, {}
local bytes, n = 0, 3
for position, id in ipairs(names) do
  local score = not seen[id] and found[position]
  local word, due = 'GONE', 0
  if score then
    due = due_text(score)
    if tonumber(score) > now then
      word = 'EARLY'
    else
      bytes = bytes + redis.call('HSTRLEN', KEYS[2], id)
      word = (#ids > 0 and bytes > most) and 'MORE' or 'FIRED'
    end
  end
  if word == 'FIRED' then
    seen[id] = true
    ids[#ids + 1] = id
    dues[#ids] = due
  end
  answer[n + 1], answer[n + 2] = word, tonumber(due)
  n = n + 2
end
if #ids > 0 then
  answer[3] = fire(ids, dues, now, us, last, 'notification')
  answer[1] = side
end
return {#ids, answer}
