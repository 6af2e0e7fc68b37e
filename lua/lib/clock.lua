-- lib/clock: the server's time, asked once in a script (6.2 and 7.0 do not freeze it).
local function clock()
  local time = redis.call('TIME')
  local us = time[1] * 1000000 + time[2]
  return math.floor(us / 1000), us
end
-- A whole number as text. '%d' takes half the time of '%.0f', but where a C long has 32 bits it is wrong.
local format = string.format
local WHOLE = format('%d', 9007199254740992) == '9007199254740992' and '%d' or '%.0f'
local function digits(n) return format(WHOLE, n) end

