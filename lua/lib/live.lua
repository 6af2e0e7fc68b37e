-- lib/live: how many entries a group has before it: not finished by it, not addressed to another (PROTOCOL.md section 7).
-- Runs only when a group is created or adopted, and only where entries are addressed to single groups.
local function entries_for(stream, group, from)
  local live = 0
  repeat
    local page = redis.call('XRANGE', stream, from, '+', 'COUNT', 100)
    for _, one in ipairs(page) do
      if for_group(one[2], group) then live = live + 1 end
      from = '(' .. one[1]
    end
  until #page < 100
  return live
end
-- How many of them are pending for the group. What was deleted while it was pending is no entry.
local function pending_for(stream, group)
  local live, from = 0, '-'
  repeat
    local page = redis.call('XPENDING', stream, group, from, '+', 1000)
    for _, row in ipairs(page) do
      local found = redis.call('XRANGE', stream, row[1], row[1])[1]
      if found and for_group(found[2], group) then live = live + 1 end
      from = '(' .. row[1]
    end
  until #page < 1000
  return live
end
-- How many retries of the group wait.
local function waiting_retries(index, group)
  local waiting, from, head = 0, 0, group .. '/'
  repeat
    local page = redis.call('ZRANGE', index, from, from + 999)
    for _, member in ipairs(page) do
      if string.sub(member, 1, #head) == head then waiting = waiting + 1 end
    end
    from = from + 1000
  until #page < 1000
  return waiting
end
-- How many entries in the stream are for the group, finished or not: what is live for a plain one.
local function all_for(stream, tally, group)
  local addressed = tonumber(redis.call('HGET', tally, 'addressed')) or 0
  return addressed == 0 and redis.call('XLEN', stream) or entries_for(stream, group, '-')
end
-- The base with which both sides balance from here on: fired so far - entries before the group - its waiting retries.
local function base_of(tally, live, waiting)
  local fired = redis.call('HMGET', tally, 'fired_timers', 'watched_fired')
  return (tonumber(fired[1]) or 0) + (tonumber(fired[2]) or 0) - live - waiting
end
-- Begins a group's part of the books.
local function open_books(tally, group, base)
  redis.call('HDEL', tally, 'done:' .. group, 'buried:' .. group, 'replayed:' .. group, 'discarded:' .. group)
  redis.call('HSET', tally, 'base:' .. group, digits(base))
end

