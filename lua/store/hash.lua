-- store/hash v1: every field of a small hash. Changes nothing.
-- KEYS    1 hash
-- ARGV    none
-- ANSWER  {number of fields, {name, value, ...}}
-- A plain HGETALL would put what users wrote first in the reply, where client libraries look for their own words.
local flat = redis.call('HGETALL', KEYS[1])
return {#flat / 2, flat}
