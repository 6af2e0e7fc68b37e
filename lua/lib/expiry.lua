-- lib/expiry: the entry of a watched key that ended. It is written later, when everything has been read: `entries` has eight
-- texts for each, `extras` its further fields.
local entries, entered, extras, last_bytes, now_text = {}, 0, {}, 0, digits(now)
-- A packed value, MessagePack [captured ms in 8 bytes, enc, payload, flaw]: the payload, and the fields that go with it.
-- Read by hand: cmsgpack takes as long as the rest of the firing.
local function unpack_value(packed)
  local enc, payload, flaw, at
  if packed and #packed > 9 and string.sub(packed, 1, 2) == '\148\207' then enc, at = text_at(packed, 11) end
  if enc then payload, at = text_at(packed, at) end
  if payload then flaw = text_at(packed, at) end
  if not flaw then return '', {'flaw', 'no_value'} end
  local high, low = struct.unpack('>I4I4', packed, 3)
  local ms, fields = high * 4294967296 + low, {}
  if enc ~= '' then add(fields, 'enc', enc) end
  if ms > 0 then add(fields, 'captured_ms', digits(ms)) end
  if flaw ~= '' then add(fields, 'flaw', flaw) end
  return payload, fields
end
-- What the last look captured, false for none; nil when the page is full.
local function last_value(one, member)
  if one.last == 0 then
    if not had_values then return false end
    local bytes = call('HSTRLEN', KEYS[6], member)
    if last_bytes > 0 and last_bytes + bytes > 1048576 then return nil end
    last_bytes = last_bytes + bytes
    one.last = call('HGET', KEYS[6], member)
  end
  return one.last
end
-- Prepares the entry; answers its due, or nil when the page is full. `fresh`: the index knows of nothing later.
-- Its due is what the index knows, but not ahead of our time: who expired has ended. The evicted would have ended then.
local function enter(one, member, source, proof, fresh)
  local colon, payload, fields = find(member, ':', 1, true) or 0, '', nil
  if value == 'given' then
    payload, fields = unpack_value(extra)
  elseif value == 'last' then
    local packed = fresh and last_value(one, member)
    if packed == nil then return nil end
    payload, fields = unpack_value(packed)
  end
  local due = fresh and one.score or now
  if op == 'V' then
    fields = fields or {}
    add(fields, 'cause', 'evicted')
  elseif due > now then
    due = now
  end
  local n = 8 * entered
  entered = entered + 1
  entries[n + 1], entries[n + 2], entries[n + 3] = sub(member, colon + 1), text, written_digits(due)
  entries[n + 4], entries[n + 5], entries[n + 6] = source, payload, rule
  entries[n + 7], entries[n + 8], extras[entered] = sub(member, 1, colon - 1), proof, fields
  return due
end
local function write_entries()
  local stream = KEYS[4]
  for i = 1, entered do
    local id, gen, due, source, payload, name, db, proof = unpack(entries, 8 * i - 7, 8 * i)
    if extras[i] then
      call('XADD', stream, '*', 'id', id, 'gen', gen, 'due', due, 'fired', now_text, 'src', source, 'kind', 'key',
        'payload', payload, 'rule', name, 'db', db, 'proof', proof, unpack(extras[i]))
    else
      call('XADD', stream, '*', 'id', id, 'gen', gen, 'due', due, 'fired', now_text, 'src', source, 'kind', 'key',
        'payload', payload, 'rule', name, 'db', db, 'proof', proof)
    end
  end
end

