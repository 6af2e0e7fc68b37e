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

