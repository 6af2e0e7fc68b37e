-- store/pause v1: sets or clears `paused` in a queue's entry, and leaves every other field as it is.
-- KEYS    1 queues
-- ARGV    1 queue  2 '1' paused, '0' not
-- ANSWER  {1, {}} set  {0, {}} no such queue
local raw = redis.call('HGET', KEYS[1], ARGV[1])
if not raw then return {0, {}} end
local info = cmsgpack.unpack(raw)
info.paused = ARGV[2] == '1'
redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(info))
return {1, {}}
