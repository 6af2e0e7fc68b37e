-- forget v1: forgets old names, debts and looks of watched keys, oldest first, and says up to where.
-- KEYS    1 looked  2 fired  3 tally
-- ARGV    1 up to this position, us  2 about so many of each set at most
-- ANSWER  {removed, {more 0|1, horizon us}}
-- The horizon is written first: one that is too far makes an event OLD, names forgotten without it would fire twice.
-- It never moves back, but for one of a clock that stood more than a second ahead of ours.
local _, us = clock()
local horizon, limit, counts = tonumber(redis.call('HGET', KEYS[3], 'horizon')) or 0, tonumber(ARGV[2]), {}
if horizon > us + 1000000 then horizon = 0 end
local was, more, removed = horizon, 0, 0
for set = 1, 2 do
  local old = redis.call('ZCOUNT', KEYS[set], '-inf', ARGV[1])
  counts[set] = math.min(old, limit)
  if old > limit then more = 1 end
  if counts[set] > 0 then
    local last = redis.call('ZRANGE', KEYS[set], counts[set] - 1, counts[set] - 1, 'WITHSCORES')
    horizon = math.max(horizon, tonumber(last[2]))
  end
end
redis.call('HDEL', KEYS[3], '') -- a first write that Redis does not refuse at maxmemory
if horizon > was then redis.call('HSET', KEYS[3], 'horizon', digits(horizon)) end
for set = 1, 2 do
  if counts[set] > 0 then removed = removed + redis.call('ZREMRANGEBYRANK', KEYS[set], 0, counts[set] - 1) end
end
return {removed, {more, horizon}}
