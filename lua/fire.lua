-- fire v1: fires the given timers, those that are due: a notification named them.
-- KEYS    1 index  2 timers  3 stream  4 tally
-- ARGV    1 the most payload, bytes  2.. ids, at most 1,000
-- ANSWER  {fired, {side error, now ms, flawed, then for each id a word and its due ms or 0}}
--         words: FIRED  GONE (not armed)  EARLY (not due)  MORE (the page was full: ask again)
local now, us = clock()
local last = redis.call('HGET', KEYS[4], 'last')
redis.call('XLEN', KEYS[3])
redis.call('HLEN', KEYS[2])

local names = {unpack(ARGV, 2)}
local found, ids, dues, places = scores_of(KEYS[1], names), {}, {}, {}
for position, id in ipairs(names) do
  local score = found[position]
  if score and tonumber(score) <= now and not places[id] then
    ids[#ids + 1] = id
    dues[#ids] = due_text(score)
    places[id] = #ids
  end
end
local records = records_of(ids, tonumber(ARGV[1]))
local answer, n, told = {side, now, 0}, 3, {}
for position, id in ipairs(names) do
  local place, word, due = places[id], 'GONE', 0
  if place and not told[id] then
    word, due = place <= #records and 'FIRED' or 'MORE', tonumber(dues[place])
    told[id] = word == 'FIRED'
  elseif found[position] and not place then
    word, due = 'EARLY', tonumber(due_text(found[position]))
  end
  answer[n + 1], answer[n + 2] = word, due
  n = n + 2
end
local fired = #records
if fired > 0 then
  answer[3] = fire(ids, dues, records, now, us, last, 'notification')
  answer[1] = side
end
return {fired, answer}
