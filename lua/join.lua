-- join v1: creates a group if it is not there, and opens its part of the books.
-- KEYS    1 stream  2 retry-index  3 tally
-- ARGV    1 group  2 '0' (with all that is in the stream) or '$' (with what fires from now on)
-- ANSWER  {'CREATED' | 'RECREATED' | 'EXISTS', {}}
-- A group that has a base was here before: somebody removed it or the stream. It begins at 0 again, whatever
-- was asked: timeouts must not be missed. Its part of the books begins anew.
local group, only_new = ARGV[1], ARGV[2] == '$'
local was_here = redis.call('HEXISTS', KEYS[3], 'base:' .. group) == 1
redis.call('ZCARD', KEYS[2])
local known = group_of(stream_groups(KEYS[1]), group)
if known and was_here then return {'EXISTS', {}} end

local live
if known then -- made by hand with XGROUP CREATE: it is adopted as it stands
  live = pending_for(KEYS[1], group) + entries_for(KEYS[1], group, '(' .. known.read)
elseif only_new and not was_here then
  live = 0
else
  live = all_for(KEYS[1], KEYS[3], group) -- of a plain group that was here, too: it counts them when they are deleted
end
local base = base_of(KEYS[3], live, waiting_retries(KEYS[2], group))

redis.call('HDEL', KEYS[3], '') -- a first write that Redis does not refuse at maxmemory: who reads makes room
if not known then
  redis.call('XGROUP', 'CREATE', KEYS[1], group, only_new and not was_here and '$' or '0', 'MKSTREAM')
end
open_books(KEYS[3], group, base)
return {known and 'EXISTS' or was_here and 'RECREATED' or 'CREATED', {}}
