-- store/record v1: a member's score, and its field in the hash beside it. Changes nothing.
-- KEYS    1 sorted set  2 hash
-- ARGV    1 member
-- ANSWER  {1, {score, value or nil}}  or  {0, {}} when the sorted set does not hold it
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score then return {0, {}} end
return {1, {score, redis.call('HGET', KEYS[2], ARGV[1])}}
