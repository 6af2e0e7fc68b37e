-- lib/clock: the server's time, asked once in a script (6.2 and 7.0 do not freeze it).
local function clock()
  local time = redis.call('TIME')
  local us = time[1] * 1000000 + time[2]
  return math.floor(us / 1000), us
end
-- A whole number as text. '%d' takes half the time of '%.0f', but where a C long has 32 bits it is wrong.
local format = string.format
local WHOLE = format('%d', 9007199254740992) == '9007199254740992' and '%d' or '%.0f'
local function digits(n) return format(WHOLE, n) end

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
local function many(flat, command, key, group)
  local sum, call = 0, redis.call
  for from = 1, #flat, 1000 do
    local upto = math.min(from + 999, #flat)
    if group then
      sum = sum + call(command, key, group, unpack(flat, from, upto))
    elseif key then
      sum = sum + call(command, key, unpack(flat, from, upto))
    else
      sum = sum + call(command, unpack(flat, from, upto))
    end
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
  local floor = last_generation
  if not floor then
    floor = tonumber(last) or 0
    if not (floor < 8.9e15) then floor = 0 end -- the year 2252 or no number: not ours
  end
  last_generation = us > floor and us or floor + 1
  return last_generation
end
-- lib/record: reads a record, MessagePack [generation, payload, call, extras].
-- A record may have been written by anybody: every type is checked, so that one bad record
-- cannot stop a page after its first write. What cannot be read fires all the same, raw, with its flaw.
local byte, sub = string.byte, string.sub
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
  local mark, length, from = byte(raw, at) or 0, nil, nil
  if mark >= 160 and mark < 192 then
    length, from = mark - 160, at + 1
  elseif mark == 217 and #raw > at then
    length, from = byte(raw, at + 1), at + 2
  elseif mark == 218 and #raw > at + 1 then
    length, from = struct.unpack('>I2', raw, at + 1), at + 3
  elseif mark == 219 and #raw > at + 3 then
    length, from = struct.unpack('>I4', raw, at + 1), at + 5
  end
  if not length or from + length - 1 > #raw then return nil end
  return sub(raw, from, from + length - 1), from + length
end
local known = {} -- extras by their bytes: most are the same
-- A record as `schedule` writes it, by hand: in half of the time that cmsgpack takes. Answers generation, payload, extras,
-- and where the call stands; nil for any other.
local function read_ours(raw)
  if not raw then return nil end
  local array, whole, g1, g2, g3, g4, g5, g6, g7, g8, mark, length = byte(raw, 1, 12)
  if array ~= 148 or whole ~= 207 or g1 ~= 0 or not length then return nil end
  local generation = (((((g2 * 256 + g3) * 256 + g4) * 256 + g5) * 256 + g6) * 256 + g7) * 256 + g8
  if generation < 1 or generation >= 9e15 then return nil end
  local payload, call
  if mark == 217 then
    call = 13 + length
    payload = sub(raw, 13, call - 1)
  else
    payload, call = text_at(raw, 11)
    if not payload then return nil end
  end
  local packed
  if byte(raw, call) == 168 then -- 8 bytes, as most are
    packed = sub(raw, call + 9)
  else
    local text, at = text_at(raw, call)
    if not text then return nil end
    packed = sub(raw, at)
  end
  local extras = known[packed]
  if not extras then
    local ok, _, unpacked = pcall(cmsgpack.unpack_one, packed)
    if not ok or not flat(unpacked) then return nil end
    extras = unpacked
    known[packed] = extras
  end
  return generation, payload, extras, call
end
-- Answers {generation or nil, payload, call, extras, flaw or nil}; a flaw is its only extra.
local function read_record(raw)
  if not raw then return {nil, '', '', {'flaw', 'no record'}, 'no record'} end
  local generation, payload, extras, at = read_ours(raw)
  if generation then return {generation, payload, (text_at(raw, at)), extras} end
  local ok, _, record = pcall(cmsgpack.unpack_one, raw)
  if ok and type(record) == 'table' then
    local call
    generation, payload, call, extras = record[1], record[2], record[3], record[4]
    if type(generation) == 'number' and generation >= 1 and generation < 9e15 and generation % 1 == 0
      and type(payload) == 'string' and type(call) == 'string' and flat(extras) then
      record[5] = nil -- what a later format puts here is no flaw
      return record
    end
  end
  return {nil, raw, '', {'flaw', 'bad record'}, 'bad record'}
end

-- lib/put: puts timers into the stream. The caller has read everything, and removes them afterwards.
-- The deadline of a score, as text. `score` is as Redis gave it; a foreign one may be no whole number in our bounds.
local function due_text(score)
  local n = tonumber(score)
  if n >= 1 and n <= 7258118400000 then
    if n % 1 == 0 then return score end
    return string.format('%.0f', math.floor(n))
  end
  return n < 1 and '1' or '7258118400000'
end
-- `fired`, `generations` and `dues` as text: a number would be turned into text again for each field. `extras` are those
-- of their records: most are one name and its value.
local function put(stream, n, ids, generations, dues, payloads, extras, fired, source)
  local call = redis.call
  for i = 1, n do
    local more = extras[i]
    if #more == 2 then
      call('XADD', stream, '*', 'id', ids[i], 'gen', generations[i], 'due', dues[i], 'fired', fired,
        'src', source, 'kind', 'timer', 'payload', payloads[i], more[1], more[2])
    else
      call('XADD', stream, '*', 'id', ids[i], 'gen', generations[i], 'due', dues[i], 'fired', fired,
        'src', source, 'kind', 'timer', 'payload', payloads[i], unpack(more))
    end
  end
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
-- All but the last byte of the generation, with what precedes it; and where those with the same begin.
local char, stem, page = string.char, nil, nil
local function pack_record(generation, payload, call, extras)
  local last = generation % 256
  if generation - last ~= page then
    page = generation - last
    local high = math.floor(page / 4294967296)
    stem = '\148\207' .. string.sub(struct.pack('>I4I4', high, page - high * 4294967296), 1, 7)
  end
  return stem .. char(last) .. (heads[#payload] or head(#payload)) .. payload
    .. (heads[#call] or head(#call)) .. call .. (extras == '' and '\144' or extras)
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
for i = 4, #argv, 8 do names[#names + 1] = argv[i] end
local found, ask, answer, n = scores_of(KEYS[1], names), ARGV[3] == 'ask', {side}, 1
local most = ask and 2097152 or 1048576 -- a call's own records may all be read
for position = 1, #names do
  local id, at = names[position], 8 * position - 4
  local slot, mode, due, text = slots[id], argv[at + 3], deadline(argv[at + 1], argv[at + 2], now)
  if not due then return {'RANGE', {position - 1}} end
  if not MODES[mode] then return {'MODE', {position - 1}} end
  local score = slot and scores[2 * slot - 1] or found[position]
  local word, generation, old = 'MORE', 0, 0
  if read_bytes > most then
    due = 0
  elseif ask then
    local record = score and armed_record(id)
    word = record and record[3] == argv[at + 5] and 'HELD' or 'UNKNOWN'
    generation, due = record and record[1] or 0, score and tonumber(due_text(score)) or 0
  else
    word = decide(mode, score and tonumber(score), due, now)
    if word == 'ABSENT' then
      due = 0
    elseif word == 'PRESENT' or word == 'KEPT' or word == 'DUE' then
      generation, due = armed_record(id)[1] or 0, tonumber(due_text(score))
    else
      generation, old = arm(id, score, word, due, text, at, us, tally[1])
    end
  end
  answer[n + 1], answer[n + 2], answer[n + 3], answer[n + 4] = word, generation, due, old
  n = n + 4
end
if armed == 0 then return {0, answer} end

local earliest = write_armed(now)
count(KEYS[4], 'scheduled', scheduled)
count(KEYS[4], 'replaced', replaced)
count(KEYS[4], 'fired_timers', fired_old)
count(KEYS[4], 'foreign', foreign)
book('HSET', KEYS[4], 'last', digits(last_generation), 'partitions', ARGV[1])
wake(ARGV[2], KEYS[1], earliest, now)
answer[1] = side
return {armed, answer}
