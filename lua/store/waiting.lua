-- store/waiting v1: the oldest that each group of a stream has not finished. Changes nothing.
-- KEYS    1 stream
-- ARGV    none
-- ANSWER  {number of groups, {name, oldest entry it holds or '', first entry it was not given or '', ...}}
local answer = {}
if redis.call('EXISTS', KEYS[1]) == 0 then return {0, answer} end
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local group = {}
  for f = 1, #flat, 2 do group[flat[f]] = flat[f + 1] end
  local held = group.pending > 0 and redis.call('XPENDING', KEYS[1], group.name)[2]
  local next = redis.call('XRANGE', KEYS[1], '(' .. group['last-delivered-id'], '+', 'COUNT', 1)[1]
  answer[#answer + 1] = group.name
  answer[#answer + 1] = held or ''
  answer[#answer + 1] = next and next[1] or ''
end
return {#answer / 3, answer}
