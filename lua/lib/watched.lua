-- lib/watched: what the index knows of watched keys. KEYS and ARGV are those of settle; everything is read at once,
-- changed in these tables item by item, and written at the end. A call has up to 256 items, and its neighbours are alike:
-- so tables are made with all their fields, and a number is made of a text, or a text of a number, once in a row.
-- A key's table: score, looked (0 = none, or before all items); debts, newest first, nil while they have not been read,
-- and owed, how many of them were read; free: it owes nothing; last (text, or false: none), 0 while it has not been read;
-- and what is to be written: at (its new `looked`, text), paid (its debts have changed). had: it had a score. held: no more
-- of it now.
local now, us = clock()
local argv, call, find, tonumber = ARGV, redis.call, string.find, tonumber
local known, members, asked, names, had_values = {}, {}, {}, {}, false
local op, at, text, value, rule, extra -- the item at hand; `asked` are the names of expiries, in the order of their items
-- A position more than a second ahead of our time is of a clock that was wrong: it counts as none.
local function position(score)
  local us_then = tonumber(score) or 0
  return us_then <= us + 1000000 and us_then or 0
end
-- How many arguments an item of a run has.
local function width(what, of) return (what == 'L' or what == 'R') and 3 or of == 'given' and 2 or 1 end
-- `firing`: the ops that ask for a name. Answers the horizon.
local function read_watched(firing)
  local debtors, count, members_count, debtors_count, first, from = {}, 0, 0, 0, 1 / 0, 1
  while from < #argv do
    local prefix, step = firing[argv[from]] and argv[from + 1] .. '/', width(argv[from], argv[from + 2])
    local upto = from + 4 + argv[from + 4] * step
    first = math.min(first, tonumber(argv[from + 1]))
    for i = from + 5, upto, step do
      local member = argv[i]
      local one = known[member]
      if not one then
        one = {score = false, looked = 0, had = false, free = false, last = 0, at = false, paid = false, held = false}
        members_count = members_count + 1
        known[member], members[members_count] = one, member
      end
      if prefix then
        count = count + 1
        asked[count] = prefix .. member
        if not one.free then
          one.free, debtors_count = true, debtors_count + 1
          debtors[debtors_count] = '?' .. member
        end
      end
    end
    from = upto + 1
  end
  for i = 1, debtors_count do asked[count + i] = debtors[i] end
  local scores, found, looks = scores_of(KEYS[1], members), scores_of(KEYS[3], asked), {}
  -- Most calls are the latest: then the looks of single keys, whose scores take long to print, need not be read.
  if call('ZCOUNT', KEYS[2], digits(first), '+inf') > 0 then looks = scores_of(KEYS[2], members) end
  local score, due, look, looked
  for i = 1, members_count do
    local one = known[members[i]]
    if scores[i] then
      if scores[i] ~= score then score, due = scores[i], tonumber(due_text(scores[i])) end
      one.score, one.had = due, true
    end
    if looks[i] then
      if looks[i] ~= look then look, looked = looks[i], position(looks[i]) end
      one.looked = looked
    end
  end
  for i = 1, count do
    if found[i] then names[asked[i]] = true end
  end
  for i = 1, debtors_count do
    if found[count + i] then known[string.sub(debtors[i], 2)].free = false end
  end
  call('XLEN', KEYS[4])
  had_values = call('HLEN', KEYS[6]) > 0
  return position(call('HGET', KEYS[5], 'horizon'))
end
-- The index learns at the item's position that the key ends at `score` (false: it is not there), and `last` of its value.
local function learn(one, score, last)
  one.looked, one.at, one.score, one.last = at, text, score, last
end
local function add(list, first, second)
  local n = #list
  list[n + 1], list[n + 2] = first, second
end
local written, written_text
local function written_digits(n)
  if n ~= written then written, written_text = n, digits(n) end
  return written_text
end
-- Writes what was learnt. Answers the earliest new deadline.
local function write_watched()
  local debts, paid, gone, scores, looks, lost, kept, earliest = {}, {}, {}, {}, {}, {}, {}, 1 / 0
  local gone_count, scores_count, looks_count = 0, 0, 0
  for m = 1, #members do
    local member = members[m]
    local one = known[member]
    if one.paid then
      for i = 1, math.max(one.owed, #one.debts) do
        local name, debt = string.rep('?', i) .. member, one.debts[i]
        if debt then add(debts, digits(debt), name) else paid[#paid + 1] = name end
      end
    end
    if one.at then
      looks[looks_count + 1], looks[looks_count + 2] = one.at, member
      looks_count = looks_count + 2
      local score = one.score
      if score then
        scores[scores_count + 1], scores[scores_count + 2] = written_digits(score), member
        scores_count = scores_count + 2
        if score < earliest then earliest = score end
      elseif one.had then
        gone_count = gone_count + 1
        gone[gone_count] = member
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

