-- retire v1: removes a consumer from its group, but never one with entries pending: they would be lost.
-- KEYS    1 stream
-- ARGV    1 group  2 consumer  3 only if idle for so many ms
-- ANSWER  {'RETIRED' | 'ABSENT' | 'PENDING' | 'BUSY', {}}
if not group_of(stream_groups(KEYS[1]), ARGV[1]) then return {'ABSENT', {}} end
for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local info = {}
  for i = 1, #flat, 2 do info[flat[i]] = flat[i + 1] end
  if info.name == ARGV[2] then
    if info.pending > 0 then return {'PENDING', {}} end
    if info.idle < tonumber(ARGV[3]) then return {'BUSY', {}} end
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
    return {'RETIRED', {}}
  end
end
return {'ABSENT', {}}
