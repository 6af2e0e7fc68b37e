-- lib/clock: the server's time, asked once in a script (6.2 and 7.0 do not freeze it).
local function clock()
  local time = redis.call('TIME')
  local us = time[1] * 1000000 + time[2]
  return math.floor(us / 1000), us
end
-- A whole number as text. '%d' takes half the time of '%.0f', but where a C long has 32 bits it is wrong.
local WHOLE = string.format('%d', 9007199254740992) == '9007199254740992' and '%d' or '%.0f'
local function digits(n) return string.format(WHOLE, n) end

-- lib/book: writes that must not undo what was done: the books, wake messages.
-- They come last; a failure is the answer's side error, never an error of the script.
local side = ''
-- What a failed redis.call says: 6.2 throws text, later ones a table.
local function said(failure) return type(failure) == 'table' and failure.err or tostring(failure) end
-- Answers whether it was written.
local function book(...)
  local ok, failure = pcall(redis.call, ...)
  if not ok and side == '' then side = said(failure) end
  return ok
end
local function count(tally, field, by)
  if by ~= 0 then book('HINCRBY', tally, field, by) end
end
-- Tells the reconciler of a new earliest due; it looks once a second anyway, so only what is due within 2 s.
local function wake(channel, index, due, now)
  if due > now + 2000 then return end
  local first = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
  if tonumber(first[2]) == due then book('PUBLISH', channel, string.format('%.0f', due)) end
end

-- lib/many: one command for many arguments, in steps of 1,000: unpack has a limit. Answers the sum.
local function many(flat, ...)
  local command, sum = {...}, 0
  local head = #command
  for from = 1, #flat, 1000 do
    local upto = math.min(from + 999, #flat)
    for i = from, upto do command[head + i - from + 1] = flat[i] end
    sum = sum + redis.call(unpack(command, 1, head + upto - from + 1))
  end
  return sum
end

-- lib/scores: the scores of many members, as Redis gives them, false for those that are not there; in their order.
local function scores_of(index, members)
  if #members == 0 then redis.call('ZCARD', index) end -- so that a wrong type is met all the same
  if #members <= 1000 then return #members > 0 and redis.call('ZMSCORE', index, unpack(members)) or {} end
  local all = {}
  for from = 1, #members, 1000 do
    local upto = math.min(from + 999, #members)
    for i, score in ipairs(redis.call('ZMSCORE', index, unpack(members, from, upto))) do all[from + i - 1] = score end
  end
  return all
end

-- lib/generation: max(TIME in us, last + 1), so that none is used twice: not after firing,
-- a clock step, FLUSHALL, a restore or a failover.
local last_generation
local function next_generation(us, last)
  local floor = last_generation or tonumber(last) or 0
  if not (floor < 8.9e15) then floor = 0 end -- the year 2252 or no number: not ours
  last_generation = math.max(us, floor + 1)
  return last_generation
end

-- lib/record: reads a record, MessagePack [generation, payload, call, extras].
-- A record may have been written by anybody: every type is checked, so that one bad record
-- cannot stop a page after its first write. What cannot be read fires all the same, raw, with its flaw.
local function flat(extras)
  if type(extras) ~= 'table' or #extras % 2 == 1 or #extras > 64 then return false end
  for i = 1, #extras do
    local part = extras[i]
    local whole = type(part) == 'number' and part >= 0 and part < 9e15 and part % 1 == 0
    if not whole and type(part) ~= 'string' then return false end
  end
  return true
end
-- A string of MessagePack, and where it ends; nil for anything else.
local function text_at(raw, at)
  local mark, length, from = string.byte(raw, at) or 0, nil, nil
  if mark >= 160 and mark < 192 then
    length, from = mark - 160, at + 1
  elseif mark == 217 and #raw > at then
    length, from = string.byte(raw, at + 1), at + 2
  elseif mark == 218 and #raw > at + 1 then
    length, from = struct.unpack('>I2', raw, at + 1), at + 3
  elseif mark == 219 and #raw > at + 3 then
    length, from = struct.unpack('>I4', raw, at + 1), at + 5
  end
  if not length or from + length - 1 > #raw then return nil end
  return string.sub(raw, from, from + length - 1), from + length
end
local known = {} -- extras by their bytes: most are the same
-- A record as `schedule` writes it, by hand: in half of the time that cmsgpack takes. nil for any other.
local function read_ours(raw)
  if #raw < 13 or string.sub(raw, 1, 2) ~= '\148\207' then return nil end
  local high, low = struct.unpack('>I4I4', raw, 3)
  local generation, payload, at, call = high * 4294967296 + low, text_at(raw, 11)
  if payload then call, at = text_at(raw, at) end
  if not call or generation < 1 or generation >= 9e15 then return nil end
  local packed = string.sub(raw, at)
  if not known[packed] then
    local ok, _, extras = pcall(cmsgpack.unpack_one, packed)
    if not ok or not flat(extras) then return nil end
    known[packed] = extras
  end
  return {generation, payload, call, known[packed]}
end
-- Answers {generation or nil, payload, call, extras, flaw or nil}.
local function read_record(raw)
  if not raw then return {nil, '', '', {}, 'no record'} end
  local ours = read_ours(raw)
  if ours then return ours end
  local ok, _, record = pcall(cmsgpack.unpack_one, raw)
  if ok and type(record) == 'table' then
    local generation, payload, call, extras = record[1], record[2], record[3], record[4]
    if type(generation) == 'number' and generation >= 1 and generation < 9e15 and generation % 1 == 0
      and type(payload) == 'string' and type(call) == 'string' and flat(extras) then
      record[5] = nil -- what a later format puts here is no flaw
      return record
    end
  end
  return {nil, raw, '', {}, 'bad record'}
end

-- lib/put: puts a timer into the stream. The caller has read everything, and removes it afterwards.
-- The deadline of a score, as text. `score` is as Redis gave it; a foreign one may be no whole number in our bounds.
local function due_text(score)
  local n = tonumber(score)
  if n >= 1 and n <= 7258118400000 then
    if n % 1 == 0 then return score end
    return string.format('%.0f', math.floor(n))
  end
  return n < 1 and '1' or '7258118400000'
end
-- `now`, `generation` and `due` as text: a number would be turned into text again for each field.
local function put(stream, id, generation, due, now, source, record)
  local extras = record[4]
  if record[5] then extras = {'flaw', record[5]} end
  redis.call('XADD', stream, '*', 'id', id, 'gen', generation, 'due', due, 'fired', now,
    'src', source, 'kind', 'timer', 'payload', record[2], unpack(extras))
end
-- The first deadline of an index, or 0 when there is none; and whether it is not behind `horizon`.
local function next_due(index, horizon)
  local first = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')[2]
  if not first then return 0, 0 end
  return tonumber(due_text(first)), tonumber(first) <= horizon and 1 or 0
end

-- lib/pack: writes a record, the same bytes as cmsgpack.pack({generation, payload, call, extras}) in a third of the time.
-- `extras` comes packed, or empty for none.
local heads = {} -- of strings, by their length
local function head(length)
  local text = length < 32 and string.char(160 + length)
    or length < 256 and '\217' .. string.char(length)
    or length < 65536 and '\218' .. struct.pack('>I2', length)
    or '\219' .. struct.pack('>I4', length)
  heads[length] = text
  return text
end
local function pack_record(generation, payload, call, extras)
  local high = math.floor(generation / 4294967296)
  return '\148\207' .. struct.pack('>I4I4', high, generation - high * 4294967296)
    .. (heads[#payload] or head(#payload)) .. payload .. (heads[#call] or head(#call)) .. call
    .. (extras == '' and '\144' or extras)
end

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

-- schedule v1: arms or re-arms timers of one partition, in order; or asks whether a call did.
-- KEYS    1 index  2 timers  3 stream  4 tally  5.. key:<id> of each keyed timer, in the order given
-- ARGV    1 partitions of the queue  2 wake channel  3 '' or 'ask', then eight for each timer:
--         id, 'at' or 'in', ms, mode, payload, call, extras as MessagePack or '', '1' when keyed
--         modes: upsert absent present later earlier
-- ANSWER  {armed, {side error, for each a word, generation or 0, due ms or 0, generation that fired or 0}}
--         words: ARMED FIRED_OLD REPLACED PRESENT KEPT ABSENT DUE, MORE (too much payload to read: send it again);
--         for 'ask' HELD UNKNOWN
--         | {'PARTITIONS', {theirs}} | {'RANGE', {position}} | {'MODE', {position}}: nothing was written
local now, us = clock()
local tally = redis.call('HMGET', KEYS[4], 'last', 'partitions')
if tally[2] and tally[2] ~= ARGV[1] then return {'PARTITIONS', {tonumber(tally[2]) or 0}} end
redis.call('XLEN', KEYS[3])
redis.call('HLEN', KEYS[2])

local names = {}
for i = 4, #ARGV, 8 do names[(i + 4) / 8] = ARGV[i] end
local found, ask, answer, n = scores_of(KEYS[1], names), ARGV[3] == 'ask', {side}, 1
local most = ask and 2097152 or 1048576 -- a call's own records may all be read
for position, id in ipairs(names) do
  local _, base, ms, mode, payload, call, extras, has_key = unpack(ARGV, 8 * position - 4, 8 * position + 3)
  local due = deadline(base, ms, now)
  if not due then return {'RANGE', {position - 1}} end
  if not MODES[mode] then return {'MODE', {position - 1}} end
  local score = slots[id] and scores[2 * slots[id] - 1] or found[position]
  local word, generation, old = 'MORE', 0, 0
  if read_bytes > most then
    due = 0
  elseif ask then
    local record = score and armed_record(id)
    word = record and record[3] == call and 'HELD' or 'UNKNOWN'
    generation, due = record and record[1] or 0, score and tonumber(due_text(score)) or 0
  else
    word = decide(mode, score and tonumber(score), due, now)
    if word == 'ABSENT' then
      due = 0
    elseif word == 'PRESENT' or word == 'KEPT' or word == 'DUE' then
      generation, due = armed_record(id)[1] or 0, tonumber(due_text(score))
    else
      generation, old = arm(id, score, word, due, payload, call, extras, has_key == '1', us, tally[1])
    end
  end
  answer[n + 1], answer[n + 2], answer[n + 3], answer[n + 4] = word, generation, due, old
  n = n + 4
end
if armed == 0 then return {0, answer} end

local earliest = write_armed(now)
count(KEYS[4], 'scheduled', scheduled)
count(KEYS[4], 'replaced', replaced)
count(KEYS[4], 'fired_timers', #olds)
count(KEYS[4], 'foreign', foreign)
book('HSET', KEYS[4], 'last', digits(last_generation), 'partitions', ARGV[1])
wake(ARGV[2], KEYS[1], earliest, now)
answer[1] = side
return {armed, answer}
