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
