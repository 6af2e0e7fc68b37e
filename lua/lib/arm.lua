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
-- A deadline from its two arguments: digits only, for Lua's tonumber takes 'nan', '0x10' and '1e400'.
local function deadline(base, text, now)
  if #text > 13 or not string.find(text, '^%d+$') then return nil end
  local due = tonumber(text) + (base == 'in' and now or 0)
  return due >= 1 and due <= 7258118400000 and due or nil
end

-- What this call has armed so far, by position; the same id may come twice and keeps its position.
-- `records` and `scores` are flat, as HSET and ZADD take them.
local slots, records, scores, dues, armed = {}, {}, {}, {}, 0
local keyed, former = {}, {} -- positions: has a plain key; was in the index before
local olds, scheduled, replaced, foreign = {}, 0, 0, 0

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
-- Arms `id` in place of what is armed with `score`, or nothing. Answers its generation, and the one that fires or 0.
local function arm(id, score, word, due, payload, call, extras, has_key, us, last)
  local old, slot = 0, slots[id]
  scheduled = scheduled + 1
  if word == 'FIRED_OLD' then
    local record = armed_record(id)
    old = record[1] or next_generation(us, last)
    if record[5] == 'no record' then foreign = foreign + 1 end
    olds[#olds + 1] = {id, digits(old), due_text(score), record}
  elseif word == 'REPLACED' and (slot or redis.call('HEXISTS', KEYS[2], id) == 1) then
    replaced = replaced + 1
  end
  if not slot then
    slot = armed + 1
    armed, slots[id], former[slot] = slot, slot, score and true or nil
  end
  local generation = next_generation(us, last)
  records[2 * slot - 1], records[2 * slot] = id, pack_record(generation, payload, call, extras)
  scores[2 * slot - 1], scores[2 * slot] = digits(due), id
  dues[slot], keyed[slot] = due, has_key and generation or nil
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
  local fired = digits(now)
  for _, old in ipairs(olds) do put(KEYS[3], old[1], old[2], old[3], fired, 'index', old[4]) end
  for slot, generation in pairs(keyed) do
    redis.call('SET', stem .. scores[2 * slot], digits(generation), 'PXAT', scores[2 * slot - 1])
  end
  many(plain, 'DEL')
  many(records, 'HSET', KEYS[2])
  many(scores, 'ZADD', KEYS[1])
  return earliest
end

