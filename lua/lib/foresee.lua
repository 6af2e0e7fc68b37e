-- lib/foresee: what a key will hold when the effects before are applied. Lua does not roll back, so each effect is checked
-- against that, before the first write. A key that effects empty keeps its type here: they fit it all the same.
local MOST, now, states = 9007199254740991, clock(), {}
-- A key's state: type; fresh: nothing of what it held before is left; value of a string, and values of fields (false:
-- none), as far as they are known.
local function state_of(key)
  local one = states[key]
  if not one then
    one = {type = redis.call('TYPE', key).ok, fields = {}}
    one.fresh = one.type == 'none'
    states[key] = one
  end
  return one
end
local function clear(one) one.type, one.value, one.fields, one.fresh = 'none', nil, {}, true end
-- A whole number as Redis writes it, within the bounds of what Lua counts exactly.
local function whole(text)
  if text ~= '0' and not string.find(text, '^%-?[1-9]%d*$') then return nil end
  local n = tonumber(text)
  return math.abs(n) <= MOST and n or nil
end
-- The sum as text; or nil and what is wrong.
local function sum(was, by)
  local held, added = whole(was or '0'), whole(by)
  if not added then return nil, 'what is to be added is no whole number within +-9007199254740991' end
  if not held then return nil, 'what is there is no whole number within +-9007199254740991' end
  if math.abs(held + added) > MOST then return nil, 'the sum is beyond +-9007199254740991' end
  return digits(held + added)
end
-- Notes what a key holds after a command whose type fits; answers what is wrong with it.
local STEPS = {
  SET = function(one, c) one.type, one.value, one.fresh = 'string', c[3], true end,
  DEL = clear,
  PEXPIREAT = function(one, c)
    if #c[3] > 16 or not string.find(c[3], '^%d+$') or tonumber(c[3]) > MOST then return 'the time is out of range' end
    if tonumber(c[3]) <= now then clear(one) end
  end,
  INCRBY = function(one, c)
    local was = one.value
    if not was and not one.fresh then was = redis.call('STRLEN', c[2]) <= 17 and redis.call('GET', c[2]) or '?' end
    local total, wrong = sum(was, c[3])
    if not total then return wrong end
    one.value = total
  end,
  HSET = function(one, c) one.fields[c[3]] = c[4] end,
  HDEL = function(one, c) one.fields[c[3]] = false end,
  HINCRBY = function(one, c)
    local was = one.fields[c[3]]
    if was == nil and not one.fresh then
      was = redis.call('HSTRLEN', c[2], c[3]) > 17 and '?' or redis.call('HGET', c[2], c[3])
    end
    local total, wrong = sum(was, c[4])
    if not total then return wrong end
    one.fields[c[3]] = total
  end,
  ZADD = function(_, c)
    local score = string.find(c[3], '^%-?%d+%.?%d*[eE]?%-?%d*$') and tonumber(c[3])
    if not score or math.abs(score) == 1 / 0 then return 'the score is no finite number' end
  end,
}

