-- client/queue v1: reads the number of partitions of a queue. Creates the queue when it is not there and a number is given.
-- KEYS    1 queues
-- ARGV    1 queue  2 partitions to create it with, or 0  3 channel that tells of new queues
-- ANSWER  {partitions or 0 when it is not there, {format}}
local raw = redis.call('HGET', KEYS[1], ARGV[1])
local partitions = tonumber(ARGV[2])
if not raw then
  if partitions == 0 then return {0, {0}} end
  local time = redis.call('TIME')
  local created_ms = time[1] * 1000 + math.floor(time[2] / 1000)
  raw = cmsgpack.pack({partitions = partitions, created_ms = created_ms, format = 1, paused = false})
  redis.call('HSET', KEYS[1], ARGV[1], raw)
  pcall(redis.call, 'PUBLISH', ARGV[3], ARGV[1]) -- only a hint: everybody reads the list again every 10 s
end
local info = cmsgpack.unpack(raw)
return {info.partitions, {info.format or 1}}
