-- lib/watched: what the index knows of watched keys. KEYS and ARGV are those of settle; everything is read at once,
-- changed in these tables item by item, and written at the end.
-- A key's table: score, looked (0 = none); debts, newest first, nil while they have not been read, and owed, how many of
-- them were read; last (text, or false: none), nil while it has not been read; and what is to be written: at (its new
-- `looked`, text), paid (its debts have changed). had: it had a score.
local now, us = clock()
local known, members, names, had_values = {}, {}, {}, false
-- A position more than a second ahead of our time is of a clock that was wrong: it counts as none.
local function position(text)
  local at = tonumber(text) or 0
  return at <= us + 1000000 and at or 0
end
-- `firing`: the ops that ask for a name. Answers the horizon.
local function read_watched(firing)
  local asked, debtors = {}, {}
  for i = 1, #ARGV, 6 do
    local member = ARGV[i + 1]
    local one = known[member]
    if not one then
      one = {}
      known[member], members[#members + 1] = one, member
    end
    if firing[ARGV[i]] then
      asked[#asked + 1] = ARGV[i + 2] .. '/' .. member
      if not one.fires then one.fires, debtors[#debtors + 1] = true, member end
    end
  end
  local count = #asked
  for i, member in ipairs(debtors) do asked[count + i] = '?' .. member end
  local scores, looks, found = scores_of(KEYS[1], members), scores_of(KEYS[2], members), scores_of(KEYS[3], asked)
  for i, member in ipairs(members) do
    local one = known[member]
    one.score, one.looked = scores[i] and tonumber(due_text(scores[i])), position(looks[i])
    one.had = one.score
  end
  for i = 1, count do names[asked[i]] = found[i] end
  for i, member in ipairs(debtors) do known[member].free = not found[count + i] end -- it owes nothing
  redis.call('XLEN', KEYS[4])
  had_values = redis.call('HLEN', KEYS[6]) > 0
  return position(redis.call('HGET', KEYS[5], 'horizon'))
end
-- The index learns at a position that the key ends at `score` (nil: it is not there), and `last` of its value.
local function learn(one, at, text, score, last)
  one.looked, one.at, one.score, one.last = at, text, score, last
end
local function add(list, first, second)
  local n = #list
  list[n + 1], list[n + 2] = first, second
end
-- Writes what was learnt. Answers the earliest new deadline.
local function write_watched()
  local debts, paid, gone, scores, looks, lost, kept, earliest = {}, {}, {}, {}, {}, {}, {}, 1 / 0
  for _, member in ipairs(members) do
    local one = known[member]
    if one.paid then
      for i = 1, math.max(one.owed, #one.debts) do
        local name, debt = string.rep('?', i) .. member, one.debts[i]
        if debt then add(debts, digits(debt), name) else paid[#paid + 1] = name end
      end
    end
    if one.at then
      add(looks, one.at, member)
      if one.score then
        add(scores, digits(one.score), member)
        if one.score < earliest then earliest = one.score end
      elseif one.had then
        add(gone, member)
      end
      if one.last then add(kept, member, one.last) elseif had_values then add(lost, member) end
    end
  end
  many(debts, 'ZADD', KEYS[3])
  many(paid, 'ZREM', KEYS[3])
  many(gone, 'ZREM', KEYS[1])
  many(scores, 'ZADD', KEYS[1])
  many(looks, 'ZADD', KEYS[2])
  many(lost, 'HDEL', KEYS[6])
  many(kept, 'HSET', KEYS[6])
  return earliest
end

