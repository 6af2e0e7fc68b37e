-- store/page v1: a page of a sorted set in the order of (score, member), bytes compared as Redis does. Changes nothing.
-- KEYS    1 sorted set
-- ARGV    1 score of the cursor, ms, or ''  2 member of the cursor  3 scores below this, ms, or ''  4 limit
-- ANSWER  {number, {member, score, ...}}: what lies behind the cursor, whether or not its member is still there
local function behind(member, cursor)
  for i = 1, math.min(#member, #cursor) do
    local a, b = member:byte(i), cursor:byte(i)
    if a ~= b then return a > b end
  end
  return #member > #cursor
end
local first, last = 0, redis.call('ZCARD', KEYS[1])
if ARGV[1] ~= '' then
  first = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. ARGV[1])
  local high = redis.call('ZCOUNT', KEYS[1], '-inf', ARGV[1])
  while first < high do
    local middle = math.floor((first + high) / 2)
    if behind(redis.call('ZRANGE', KEYS[1], middle, middle)[1], ARGV[2]) then high = middle else first = middle + 1 end
  end
end
if ARGV[3] ~= '' then last = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. ARGV[3]) end
last = math.min(last, first + tonumber(ARGV[4]))
if last <= first then return {0, {}} end
local flat = redis.call('ZRANGE', KEYS[1], first, last - 1, 'WITHSCORES')
return {#flat / 2, flat}
