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

-- client/get v1: the timer that is armed. Changes nothing.
-- KEYS    1 index  2 timers
-- ARGV    1 id
-- ANSWER  {1, {generation or 0, due ms, payload, encoding or '', trace or '', flaw or ''}}  or  {0, {}} when it is not armed
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score then return {0, {}} end
local record = read_record(redis.call('HGET', KEYS[2], ARGV[1]))
local extras = {}
for i = 1, #record[4], 2 do extras[record[4][i]] = record[4][i + 1] end
return {1, {record[1] or 0, tonumber(due_text(score)), record[2], extras.enc or '', extras.trace or '', record[5] or ''}}
