-- store/values v1: what keys of one node hold, as far as it can be a payload. Changes nothing.
-- KEYS    none: on a cluster they are of many slots, and the first line of the text is then a shebang that allows it
-- ARGV    1 the most of one value, bytes  2.. keys, at most 1,000
-- ANSWER  {number of keys, {kind, data, ...}}  kinds and data as lib/value says: string hash large type none
--         more: the page is full, or the node does not serve the key: ask again, where it is served
local answer, limit = {}, tonumber(ARGV[1])
for i = 2, #ARGV do
  local served = redis.pcall('EXISTS', ARGV[i])
  if type(served) == 'table' and not string.find(served.err, 'non local key', 1, true) then return served end
  local kind, data = 'more', 0
  if type(served) == 'number' then kind, data = value_of(ARGV[i], limit) end
  answer[#answer + 1] = kind
  answer[#answer + 1] = data
end
return {#ARGV - 1, answer}
