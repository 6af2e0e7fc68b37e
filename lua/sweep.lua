-- sweep v1: fires one page of what is due from the index.
-- KEYS    1 index  2 timers  3 stream  4 tally
-- ARGV    1 the most timers  2 the most payload, bytes  3 grace, ms  4 name of this process
-- ANSWER  {fired, {side error, now ms, next due ms or 0, more 0|1, another 0|1, flawed, due ms joined by ','}}
--         another: a different process fired here within the last 100 ms
local now, us = clock()
local horizon = now - ARGV[3]
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', digits(horizon), 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local tally = redis.call('HMGET', KEYS[4], 'last', 'last_sweeper')
redis.call('XLEN', KEYS[3])
redis.call('HLEN', KEYS[2])

local ids, dues, bytes, most = {}, {}, 0, tonumber(ARGV[2])
for i = 1, #due, 2 do
  bytes = bytes + redis.call('HSTRLEN', KEYS[2], due[i])
  if bytes > most and #ids > 0 then break end
  ids[#ids + 1] = due[i]
  dues[#ids] = due_text(due[i + 1])
end

local flawed = 0
if #ids > 0 then flawed = fire(ids, dues, now, us, tally[1], 'index') end
if #ids > 0 then book('HSET', KEYS[4], 'last_sweeper', ARGV[4] .. ':' .. digits(now)) end

local first, more = next_due(KEYS[1], horizon)
local who, at = string.match(tally[2] or '', '^(.*):(%d+)$')
local another = who and who ~= ARGV[4] and now - at <= 100 and 1 or 0
return {#ids, {side, now, first, more, another, flawed, table.concat(dues, ',')}}
