-- cancel v1: disarms timers, optionally only a given generation. What has fired is not touched.
-- KEYS    1 index  2 timers  3 tally  4.. key:<id> of each timer, in the order given
-- ARGV    two for each timer: id, generation or '' for any
-- ANSWER  {disarmed, {side error, for each a word, generation or 0, due ms or 0}}
--         words: CANCELLED  ABSENT (not armed)  OTHER (another generation is armed)  MORE (the page was full: ask again)
redis.call('HLEN', KEYS[2])
redis.call('HLEN', KEYS[3])
local names = {}
for i = 1, #ARGV, 2 do names[(i + 1) / 2] = ARGV[i] end
local found, answer, ids, keys, seen = scores_of(KEYS[1], names), {side}, {}, {}, {}
local bytes, reads, known, n = 0, 0, 0, 1
for position, id in ipairs(names) do
  local wanted, score = ARGV[2 * position], not seen[id] and found[position]
  local word, generation, due = 'ABSENT', 0, 0
  if score then
    bytes = bytes + redis.call('HSTRLEN', KEYS[2], id)
    word = 'MORE'
    if reads == 0 or bytes <= 1048576 then
      reads = reads + 1
      local record = read_record(redis.call('HGET', KEYS[2], id))
      generation, due = record[1] or 0, tonumber(due_text(score))
      word = (wanted == '' or wanted == digits(generation)) and 'CANCELLED' or 'OTHER'
      if word == 'CANCELLED' and record[5] ~= 'no record' then known = known + 1 end
    end
  end
  if word == 'CANCELLED' then
    seen[id] = true
    ids[#ids + 1] = id
    keys[#keys + 1] = KEYS[3 + position]
  end
  answer[n + 1], answer[n + 2], answer[n + 3] = word, generation, due
  n = n + 3
end
if #ids > 0 then
  many(ids, 'ZREM', KEYS[1])
  many(ids, 'HDEL', KEYS[2])
  many(keys, 'DEL')
  count(KEYS[3], 'cancelled', known)
  answer[1] = side
end
return {#ids, answer}
