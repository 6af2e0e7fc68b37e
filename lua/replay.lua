-- replay v1: puts dead letters back into the stream, each addressed to its group, attempt 1, same generation.
-- KEYS    1 stream  2 dead  3 tally
-- ARGV    1.. ids of dead letters
-- ANSWER  {replayed, {side error, a word for each}}
--         words: OK  ABSENT (gone)  BAD (no id and generation to put back)  NOGROUP (its group is gone)
-- The caller keeps a call within 256 letters and 1 MiB of payload.
local OURS = {reason = 1, detail = 1, buried = 1, by = 1, entry = 1, attempt = 1, deaths = 1, fired = 1, src = 1, group = 1}
local now, groups, answer, puts, letters = digits(clock()), stream_groups(KEYS[1]), {side}, {}, {}
local seen, by_group = {}, {}
redis.call('XLEN', KEYS[2])
redis.call('HLEN', KEYS[3])
for _, id in ipairs(ARGV) do
  local flat, letter, word = nil, nil, 'ABSENT'
  if not seen[id] then flat, letter = entry(KEYS[2], id) end
  if flat then
    word = not (letter.id and letter.gen and letter.due and letter.payload) and 'BAD'
      or not group_of(groups, letter.group or '') and 'NOGROUP' or 'OK'
  end
  if word == 'OK' then
    seen[id] = true
    local fields = {}
    for f = 1, #flat, 2 do
      if not OURS[flat[f]] then
        fields[#fields + 1] = flat[f]
        fields[#fields + 1] = flat[f + 1]
      end
    end
    for _, part in ipairs({'fired', now, 'src', 'replay', 'group', letter.group, 'attempt', '1'}) do
      fields[#fields + 1] = part
    end
    puts[#puts + 1], letters[#letters + 1] = fields, id
    by_group[letter.group] = (by_group[letter.group] or 0) + 1
  end
  answer[#answer + 1] = word
end
if #puts > 0 then
  redis.call('HDEL', KEYS[3], '') -- a first write that Redis does not refuse at maxmemory
  for _, fields in ipairs(puts) do redis.call('XADD', KEYS[1], '*', unpack(fields)) end
  many(letters, 'XDEL', KEYS[2])
  for group, n in pairs(by_group) do count(KEYS[3], 'replayed:' .. group, n) end
  count(KEYS[3], 'addressed', #puts)
  answer[1] = side
end
return {#puts, answer}
