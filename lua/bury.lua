-- bury v2: moves delivered timeouts to the dead letters, with the reason. Fenced.
-- KEYS    1 stream  2 dead  3 tally
-- ARGV    1 group  2 consumer, then three for each: entry id, reason (a word), detail (text)
-- ANSWER  {buried, {side error, a word for each}}
--         words: OK  LOST (not pending for this consumer: nothing was written)  GONE (deleted by somebody: acknowledged)
-- The caller keeps a call within 256 entries and 1 MiB of payload.
local now, group, consumer, only, answer, seen = clock(), ARGV[1], ARGV[2], alone(KEYS[1]), {side}, {}
local plain = is_plain(KEYS[3], group)
redis.call('XLEN', KEYS[2])
for i = 3, #ARGV, 3 do
  local id, word = ARGV[i], 'LOST'
  if not seen[id] and owned(KEYS[1], group, consumer, id) then
    local flat, fields = entry(KEYS[1], id)
    seen[id] = true
    leave(group, only, id, fields)
    word = flat and 'OK' or 'GONE'
    if flat then letter(group, ARGV[i + 1], ARGV[i + 2], now, consumer, id, flat) end
  end
  answer[#answer + 1] = word
end
if #acks > 0 then
  redis.call('HDEL', KEYS[3], '') -- a first write that Redis does not refuse at maxmemory
  write_letters(KEYS[2])
  write_leaving(KEYS[1], KEYS[3], group, plain)
  count(KEYS[3], 'buried:' .. group, #letters)
  answer[1] = side
end
return {#letters, answer}
