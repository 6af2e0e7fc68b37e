-- lib/arm: arming, in two steps: `arm` decides and reads, timer by timer; `write_armed` writes them all.
local MODES = {upsert = true, absent = true, present = true, later = true, earlier = true}
-- The table of docs/PROTOCOL.md section 4. `armed` is the armed deadline or nil; `due` the new one.
local function decide(mode, armed, due, now)
  if not armed then return mode == 'present' and 'ABSENT' or 'ARMED' end
  if armed <= now then return (mode == 'upsert' or mode == 'absent') and 'FIRED_OLD' or 'DUE' end
  if mode == 'absent' then return 'PRESENT' end
  if mode == 'later' and due <= armed or mode == 'earlier' and due >= armed then return 'KEPT' end
  return 'REPLACED'
end
-- A deadline from its two arguments, and as text: digits only, for Lua's tonumber takes 'nan', '0x10' and '1e400'.
-- Many timers of a call have the same: the last one is kept.
local argv, find, last_base, last_ms, last_due, last_text = ARGV, string.find, nil, nil, nil, nil
local function deadline(base, ms, now)
  if ms == last_ms and base == last_base then return last_due, last_text end
  if #ms > 13 or not find(ms, '^%d+$') then return nil end
  local due = tonumber(ms)
  if base == 'in' then due = due + now end
  if due < 1 or due > 7258118400000 then return nil end
  last_base, last_ms, last_due = base, ms, due
  last_text = base ~= 'in' and due >= 1e12 and ms or digits(due) -- 13 digits begin with no 0
  return due, last_text
end

-- What this call has armed so far, by position; the same id may come twice and keeps its position.
-- `records` and `scores` are flat, as HSET and ZADD take them.
local slots, records, scores, dues, armed = {}, {}, {}, {}, 0
local keyed, former = {}, {} -- positions: has a plain key; was in the index before
local olds, fired_old, scheduled, replaced, foreign = {{}, {}, {}, {}, {}}, 0, 0, 0, 0 -- olds as `put` takes them

local read, read_bytes = {}, 0
-- The record that `id` is armed with now.
local function armed_record(id)
  local slot = slots[id]
  if slot then return read_record(records[2 * slot]) end
  if not read[id] then
    read_bytes = read_bytes + redis.call('HSTRLEN', KEYS[2], id)
    read[id] = read_record(redis.call('HGET', KEYS[2], id))
  end
  return read[id]
end
-- Arms `id` in place of what is armed with `score`, or nothing; its arguments begin at ARGV[at]. Answers its
-- generation, and the one that fires or 0.
local function arm(id, score, word, due, text, at, us, last)
  local old, slot = 0, slots[id]
  scheduled = scheduled + 1
  if word == 'FIRED_OLD' then
    local record = armed_record(id)
    old = record[1] or next_generation(us, last)
    if record[5] == 'no record' then foreign = foreign + 1 end
    fired_old = fired_old + 1
    local values = {id, digits(old), due_text(score), record[2], record[4]}
    for field, value in ipairs(values) do olds[field][fired_old] = value end
  elseif word == 'REPLACED' and (slot or redis.call('HEXISTS', KEYS[2], id) == 1) then
    replaced = replaced + 1
  end
  if not slot then
    slot = armed + 1
    armed, slots[id] = slot, slot
    if score then former[slot] = true end
  end
  local generation, field = next_generation(us, last), 2 * slot
  records[field - 1], records[field] = id, pack_record(generation, argv[at + 4], argv[at + 5], argv[at + 6])
  scores[field - 1], scores[field], dues[slot] = text, id, due
  if argv[at + 7] == '1' then keyed[slot] = generation elseif keyed[slot] then keyed[slot] = nil end
  return generation, old
end
-- Writes what was armed; answers the earliest deadline. Plain keys go before the index: what fails there leaves the
-- timer as it was. A former plain key of a timer that is keyed no more is not declared; it is in the same slot, and is
-- read before any write.
local function write_armed(now)
  local plain, earliest, stem = {}, 1 / 0, string.sub(KEYS[1], 1, -6) .. 'key:' -- all but the word `index`
  for slot = 1, armed do
    if dues[slot] < earliest then earliest = dues[slot] end
    if keyed[slot] and dues[slot] <= now then keyed[slot], former[slot] = nil, true end
    if former[slot] and not keyed[slot] then plain[#plain + 1] = stem .. scores[2 * slot] end
  end
  if #plain > 0 and many(plain, 'EXISTS') == 0 then plain = {} end
  put(KEYS[3], fired_old, olds[1], olds[2], olds[3], olds[4], olds[5], digits(now), 'index')
  for slot, generation in pairs(keyed) do
    redis.call('SET', stem .. scores[2 * slot], digits(generation), 'PXAT', scores[2 * slot - 1])
  end
  many(plain, 'DEL')
  many(records, 'HSET', KEYS[2])
  many(scores, 'ZADD', KEYS[1])
  return earliest
end

