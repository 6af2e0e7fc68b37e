-- bury v1: moves delivered timeouts to the dead letters, with the reason. Fenced.
-- KEYS    1 stream  2 dead  3 tally
-- ARGV    1 group  2 consumer, then three for each: entry id, reason (a word), detail (text)
-- ANSWER  {buried, {side error, a word for each}}
--         words: OK  LOST (not pending for this consumer: nothing was written)  GONE (deleted by somebody: acknowledged)
-- The caller keeps a call within 256 entries and 1 MiB of payload.
local now, group, only, answer, seen = digits(clock()), ARGV[1], alone(KEYS[1]), {side}, {}
local letters, acks, deletes = {}, {}, {}
redis.call('XLEN', KEYS[2])
redis.call('HLEN', KEYS[3])
for i = 3, #ARGV, 3 do
  local id, word = ARGV[i], 'LOST'
  if not seen[id] and owned(KEYS[1], group, ARGV[2], id) then
    local flat, fields = entry(KEYS[1], id)
    seen[id] = true
    acks[#acks + 1] = id
    if only or flat and fields.group == group then deletes[#deletes + 1] = id end
    word = flat and 'OK' or 'GONE'
    if flat then
      local letter = {'group', group, 'reason', ARGV[i + 1], 'detail', ARGV[i + 2], 'buried', now,
        'by', ARGV[2], 'entry', id}
      for f = 1, #flat, 2 do
        if flat[f] ~= 'group' then
          letter[#letter + 1] = flat[f]
          letter[#letter + 1] = flat[f + 1]
        end
      end
      letters[#letters + 1] = letter
    end
  end
  answer[#answer + 1] = word
end
if #acks > 0 then
  redis.call('HDEL', KEYS[3], '') -- a first write that Redis does not refuse at maxmemory
  for _, letter in ipairs(letters) do redis.call('XADD', KEYS[2], '*', unpack(letter)) end
  many(acks, 'XACK', KEYS[1], group)
  many(deletes, 'XDEL', KEYS[1])
  count(KEYS[3], 'buried:' .. group, #letters)
  answer[1] = side
end
return {#letters, answer}
