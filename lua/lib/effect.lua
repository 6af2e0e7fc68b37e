-- lib/effect: effects: writes that come with an acknowledgement.
local KINDS = { -- a command: the type its key must have, and how many arguments stand behind the key
  SET = {args = 1}, DEL = {args = 0}, PEXPIREAT = {args = 1}, PUBLISH = {args = 1}, INCRBY = {'string', args = 1},
  HSET = {'hash', args = 2}, HDEL = {'hash', args = 1}, HINCRBY = {'hash', args = 2}, SADD = {'set', args = 1},
  SREM = {'set', args = 1}, ZADD = {'zset', args = 2}, ZREM = {'zset', args = 1}, LPUSH = {'list', args = 1},
  RPUSH = {'list', args = 1}, XADD = {'stream'}}
local REMOVES = {HDEL = true, SREM = true, ZREM = true}
local function wrong_with(c)
  local kind, given = KINDS[c[1]], #c - 2
  if not kind then return 'there is no such effect' end
  if given ~= (kind.args or given) then return 'it has too many or too few arguments' end
  if c[1] == 'XADD' and (given % 2 == 0 or given < 3 or given > 1001) then return 'an entry has 1 to 500 fields' end
  -- From 7.0 on a user's rights are known beforehand.
  if redis.acl_check_cmd and not redis.acl_check_cmd(unpack(c)) then return 'this user may not do it' end
  if c[1] == 'PUBLISH' then return nil end
  local one = state_of(c[2])
  if kind[1] and one.type ~= 'none' and one.type ~= kind[1] then
    return 'the key holds a ' .. one.type .. ', not a ' .. kind[1]
  end
  local wrong = STEPS[c[1]] and STEPS[c[1]](one, c)
  if kind[1] and not REMOVES[c[1]] then one.type = kind[1] end
  return wrong
end
local function named(n, c) return 'effect ' .. n .. ', ' .. c[1] .. ' ' .. string.sub(c[2], 1, 200) .. ': ' end
-- Reads the effects of one timeout: their number stands at ARGV[at], their first key is KEYS[key]. Answers them as
-- commands, and where both go on.
local function read_effects(at, key)
  local commands, count = {}, tonumber(ARGV[at])
  at = at + 1
  for n = 1, count do
    local command = {ARGV[at]}
    if ARGV[at] ~= 'PUBLISH' then command[2], key = KEYS[key], key + 1 end
    if ARGV[at] == 'XADD' then command[3] = '*' end
    for i = at + 2, at + 1 + ARGV[at + 1] do command[#command + 1] = ARGV[i] end
    commands[n], at = command, at + 2 + ARGV[at + 1]
  end
  return commands, at, key
end
-- What can't be applied, and why; nil when all can.
local function refusal(commands)
  states = {}
  for n, command in ipairs(commands) do
    local wrong = wrong_with(command)
    if wrong then return named(n, command) .. wrong end
  end
end
-- Applies them; answers what failed all the same. What follows it is skipped.
local function perform(commands)
  for n, command in ipairs(commands) do
    local ok, failure = pcall(redis.call, unpack(command))
    if not ok then return named(n, command) .. said(failure) end
  end
end

