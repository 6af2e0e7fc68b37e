-- touch v1: marks a position among the notifications of a node, and reads when watched keys end: with proof of those it expired.
-- KEYS    none: on a cluster they are of many slots, and the first line of the text is then a shebang that allows it
-- ARGV    1 marker channel  2 node  3 guard: a key that is never there  4 the most of one value, bytes; 0 = read none
--         5 read those of keys that end within so many ms  6.. watched keys, at most 256
-- ANSWER  {number of keys, {position us, keys in the database now, {one number for each key}, {values}}}
--         numbers: due ms  -1 (no TTL)  -2 (gone)  -3 (this touch made it expire)  -4 (the node does not serve it)
--         values: for each that was read its place in the list (from 0), kind, data, as lib/value says
-- The marker goes out first: whatever this touch expires has its event behind it, which every listener names position + 1.
redis.call('HDEL', ARGV[3], '') -- READONLY on a replica, where what is gone may not have expired
local now, us = clock()
redis.call('PUBLISH', ARGV[1], ARGV[2] .. ' ' .. digits(us))
local absolute = redis.REDIS_VERSION_NUM ~= nil -- which 6.2 does not tell, and it has no PEXPIRETIME either
local ask, limit, within = absolute and 'PEXPIRETIME' or 'PTTL', tonumber(ARGV[4]), tonumber(ARGV[5])
local size, dues, values = redis.call('DBSIZE'), {}, {}
for i = 6, #ARGV do
  local due = redis.pcall(ask, ARGV[i])
  if type(due) == 'table' then
    if not string.find(due.err, 'non local key', 1, true) then return due end
    due = -4
  elseif due == -2 then
    local left = redis.call('DBSIZE')
    if left < size then due = -3 end
    size = left
  elseif due >= 0 then
    if not absolute then due = now + due end -- up to the script's own time too early, never too late
    if limit > 0 and due - now <= within then
      local n = #values
      values[n + 1], values[n + 2], values[n + 3] = i - 6, value_of(ARGV[i], limit)
    end
  end
  dues[i - 5] = due
end
return {#dues, {us, size, dues, values}}
