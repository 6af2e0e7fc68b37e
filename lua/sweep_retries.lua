-- sweep_retries v1: fires one page of what is due from the retry index, each entry addressed to its group.
-- KEYS    1 retry-index  2 retry-timers  3 stream  4 dead  5 tally
-- ARGV    1 the most retries  2 the most payload, bytes
-- ANSWER  {fired, {side error, now ms, next due ms or 0, more 0|1, flawed, group gone}}
-- A retry of a group that was dropped goes to the dead letters. A group that only lost its stream keeps its base
-- in the books: its retries go on, and it reads them when it joins again.
local now, us = clock()
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', digits(now), 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local last = redis.call('HGET', KEYS[5], 'last')
redis.call('XLEN', KEYS[3])
redis.call('XLEN', KEYS[4])
redis.call('HLEN', KEYS[2])

local members, bytes, flawed, gone = {}, 0, 0, 0
for i = 1, #due, 2 do
  bytes = bytes + redis.call('HSTRLEN', KEYS[2], due[i]) + #due[i] -- a watched key's name may be as large as a payload
  if #members > 0 and bytes > tonumber(ARGV[2]) then break end
  members[#members + 1] = due[i]
end
if #members > 0 then
  local groups, puts = stream_groups(KEYS[3]), {}
  local records = redis.call('HMGET', KEYS[2], unpack(members))
  for i, member in ipairs(members) do
    local group, id, generation = string.match(member, '^([^/]+)/(.+)/(%d+)$')
    local here = group and (group_of(groups, group) or redis.call('HEXISTS', KEYS[5], 'base:' .. group) == 1)
    local record = read_record(records[i])
    local extras, has = record[4], {}
    if record[5] then flawed = flawed + 1 end
    for f = 1, #extras, 2 do has[extras[f]] = true end
    local fields = {'id', id or member, 'gen', generation or digits(record[1] or next_generation(us, last)),
      'fired', digits(now), 'payload', record[2]}
    local function add(name, value)
      fields[#fields + 1] = name
      fields[#fields + 1] = value
    end
    if group then add('group', group) end
    if not here then
      gone = gone + 1
      add('reason', group and 'group_gone' or 'malformed')
      add('buried', digits(now))
    end
    if not has.due then add('due', due_text(due[2 * i])) end
    if not has.src then add('src', 'index') end
    if not has.kind then add('kind', #(id or '') > 512 and 'key' or 'timer') end -- no timer's id is longer
    for f = 1, #extras, 2 do add(extras[f], extras[f + 1]) end
    puts[i] = {here and KEYS[3] or KEYS[4], fields}
  end

  redis.call('HDEL', KEYS[2], '') -- a first write that Redis does not refuse at maxmemory: firing goes on
  for _, one in ipairs(puts) do redis.call('XADD', one[1], '*', unpack(one[2])) end
  redis.call('ZREM', KEYS[1], unpack(members))
  redis.call('HDEL', KEYS[2], unpack(members))
  count(KEYS[5], 'addressed', #members - gone)
  count(KEYS[5], 'group_gone', gone)
  if last_generation then book('HSET', KEYS[5], 'last', digits(last_generation)) end
end
local first, more = next_due(KEYS[1], now)
return {#members - gone, {side, now, first, more, flawed, gone}}
