-- store/field v1: one field of a hash. Changes nothing.
-- KEYS    1 hash
-- ARGV    1 field
-- ANSWER  {1, {value}}  or  {0, {}}
local value = redis.call('HGET', KEYS[1], ARGV[1])
if value then return {1, {value}} end
return {0, {}}
