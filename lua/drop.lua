-- drop v2: removes a group with its waiting retries and its part of the books. Call again until the cursor is '0'.
-- KEYS    1 stream  2 retry-index  3 retry-timers  4 tally
-- ARGV    1 group  2 cursor, '0' at first
-- ANSWER  {1 when the group was there, {retries removed, cursor}}
-- The group goes last: until then its retries still have a reader.
local group, members = ARGV[1], {}
redis.call('HLEN', KEYS[3])
redis.call('HLEN', KEYS[4])
local known = group_of(stream_groups(KEYS[1]), group)
local page = redis.call('ZSCAN', KEYS[2], ARGV[2], 'MATCH', group .. '/*', 'COUNT', 1000)
for i = 1, #page[2], 2 do members[#members + 1] = page[2][i] end
local removed = many(members, 'ZREM', KEYS[2])
many(members, 'HDEL', KEYS[3])
if page[1] == '0' then
  if known then redis.call('XGROUP', 'DESTROY', KEYS[1], group) end
  for _, what in ipairs({'base:', 'done:', 'buried:', 'replayed:', 'discarded:', 'plain:'}) do
    redis.call('HDEL', KEYS[4], what .. group)
  end
end
return {known and 1 or 0, {removed, page[1]}}
