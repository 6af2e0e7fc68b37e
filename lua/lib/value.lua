-- lib/value: what keys hold, as far as it can be a payload: strings and hashes, each up to a limit, in sum up to 1 MiB.
local value_cost = 0 -- bytes read, and 64 more for each field of a hash: each is a command
-- Answers a kind and its data: 'string', bytes; 'hash', {field, value, ...}; 'large', its bytes, or 0 when it has too
-- many fields to count them; 'type', 0; 'none', 0 (no such key); 'more', 0 (the page is full: ask again).
local function value_of(key, limit)
  local kind, fields, bytes = redis.call('TYPE', key).ok, {}, 0
  if kind == 'string' then
    bytes = redis.call('STRLEN', key)
  elseif kind == 'hash' then
    local many_fields = redis.call('HLEN', key)
    if many_fields > 1000 then return 'large', 0 end
    if value_cost > 0 and value_cost + 64 * many_fields > 1048576 then return 'more', 0 end
    fields = redis.call('HKEYS', key)
    for _, field in ipairs(fields) do bytes = bytes + #field + redis.call('HSTRLEN', key, field) end
  else
    return kind == 'none' and 'none' or 'type', 0
  end
  if bytes > limit then return 'large', bytes end
  if value_cost > 0 and value_cost + bytes > 1048576 then return 'more', 0 end
  value_cost = value_cost + bytes + 64 * #fields
  if kind == 'string' then return kind, redis.call('GET', key) end
  local flat, values = {}, #fields > 0 and redis.call('HMGET', key, unpack(fields)) or {}
  for i, field in ipairs(fields) do
    if values[i] then -- a field may have a TTL of its own
      flat[#flat + 1] = field
      flat[#flat + 1] = values[i]
    end
  end
  return kind, flat
end

