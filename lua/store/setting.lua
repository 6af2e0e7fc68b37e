-- store/setting v1: sets one field of a queue's entry, and leaves every other field as it is.
-- KEYS    1 queues
-- ARGV    1 queue  2 field: paused, history  3 its value, MessagePack
-- ANSWER  {1, {}} set  {0, {}} no such queue
local raw = redis.call('HGET', KEYS[1], ARGV[1])
if not raw then return {0, {}} end
local info = cmsgpack.unpack(raw)
info[ARGV[2]] = cmsgpack.unpack(ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(info))
return {1, {}}
