-- join v1: creates a group if it is not there, and opens its part of the books.
-- KEYS    1 stream  2 retry-index  3 tally
-- ARGV    1 group  2 '0' (with all that is in the stream) or '$' (with what fires from now on)
-- ANSWER  {'CREATED' | 'RECREATED' | 'EXISTS', {}}
-- A group that has a base was here before: somebody removed it or the stream. It begins at 0 again, whatever
-- was asked: timeouts must not be missed. Its part of the books begins anew.
-- base = fired so far - entries before the group - its waiting retries: then both sides balance from here on.
local group, only_new = ARGV[1], ARGV[2] == '$'
local tally = redis.call('HMGET', KEYS[3], 'fired_timers', 'watched_fired', 'base:' .. group, 'addressed')
redis.call('ZCARD', KEYS[2])
local known = group_of(stream_groups(KEYS[1]), group)
if known and tally[3] then return {'EXISTS', {}} end

local live = 0
if known then -- made by hand with XGROUP CREATE: it is adopted as it stands
  live = pending_for(KEYS[1], group) + entries_for(KEYS[1], group, '(' .. known.read)
elseif only_new and not tally[3] then
  live = 0
elseif (tonumber(tally[4]) or 0) == 0 then
  live = redis.call('XLEN', KEYS[1]) -- nothing was ever addressed to one group
else
  live = entries_for(KEYS[1], group, '-')
end
local base = (tonumber(tally[1]) or 0) + (tonumber(tally[2]) or 0) - live - waiting_retries(KEYS[2], group)

redis.call('HDEL', KEYS[3], '') -- a first write that Redis does not refuse at maxmemory: who reads makes room
if not known then
  redis.call('XGROUP', 'CREATE', KEYS[1], group, only_new and not tally[3] and '$' or '0', 'MKSTREAM')
end
redis.call('HDEL', KEYS[3], 'done:' .. group, 'buried:' .. group, 'replayed:' .. group, 'discarded:' .. group)
redis.call('HSET', KEYS[3], 'base:' .. group, digits(base))
return {known and 'EXISTS' or tally[3] and 'RECREATED' or 'CREATED', {}}
