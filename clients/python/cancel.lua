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

-- cancel v1: disarms timers, optionally only a given generation. What has fired is not touched.
-- KEYS    1 index  2 timers  3 tally  4.. key:<id> of each timer, in the order given
-- ARGV    two for each timer: id, generation or '' for any
-- ANSWER  {disarmed, {side error, for each a word, generation or 0, due ms or 0}}
--         words: CANCELLED  ABSENT (not armed)  OTHER (another generation is armed)  MORE (the page was full: ask again)
redis.call('HLEN', KEYS[2])
redis.call('HLEN', KEYS[3])
local names = {}
for i = 1, #ARGV, 2 do names[(i + 1) / 2] = ARGV[i] end
local found, answer, ids, keys, seen = scores_of(KEYS[1], names), {side}, {}, {}, {}
local bytes, reads, known, n = 0, 0, 0, 1
for position, id in ipairs(names) do
  local wanted, score = ARGV[2 * position], not seen[id] and found[position]
  local word, generation, due = 'ABSENT', 0, 0
  if score then
    bytes = bytes + redis.call('HSTRLEN', KEYS[2], id)
    word = 'MORE'
    if reads == 0 or bytes <= 1048576 then
      reads = reads + 1
      local record = read_record(redis.call('HGET', KEYS[2], id))
      generation, due = record[1] or 0, tonumber(due_text(score))
      word = (wanted == '' or wanted == digits(generation)) and 'CANCELLED' or 'OTHER'
      if word == 'CANCELLED' and record[5] ~= 'no record' then known = known + 1 end
    end
  end
  if word == 'CANCELLED' then
    seen[id] = true
    ids[#ids + 1] = id
    keys[#keys + 1] = KEYS[3 + position]
  end
  answer[n + 1], answer[n + 2], answer[n + 3] = word, generation, due
  n = n + 3
end
if #ids > 0 then
  many(ids, 'ZREM', KEYS[1])
  many(ids, 'HDEL', KEYS[2])
  many(keys, 'DEL')
  count(KEYS[3], 'cancelled', known)
  answer[1] = side
end
return {#ids, answer}
