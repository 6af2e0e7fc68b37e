-- lib/expiry: the entry of a watched key that ended. It is written later, when everything has been read.
local entries, last_bytes, now_text = {}, 0, digits(now)
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
  if one.last == nil and had_values then
    local bytes = redis.call('HSTRLEN', KEYS[6], member)
    if last_bytes > 0 and last_bytes + bytes > 1048576 then return nil end
    last_bytes = last_bytes + bytes
    one.last = redis.call('HGET', KEYS[6], member)
  end
  return one.last or false
end
-- Prepares the entry; answers its due, or nil when the page is full. `fresh`: the index knows of nothing later.
-- Its due is what the index knows, but not ahead of our time: who expired has ended. The evicted would have ended then.
local function enter(one, member, item, source, proof, fresh)
  local colon, payload, fields = string.find(member, ':', 1, true) or 0, '', nil
  if item.value == 'given' then
    payload, fields = unpack_value(item.extra)
  elseif item.value == 'last' then
    local packed = fresh and last_value(one, member)
    if packed == nil then return nil end
    payload, fields = unpack_value(packed)
  end
  local evicted, due = item.op == 'V', fresh and one.score or now
  if evicted then
    fields = fields or {}
    add(fields, 'cause', 'evicted')
  elseif due > now then
    due = now
  end
  local entry = {'*', 'id', string.sub(member, colon + 1), 'gen', item.text, 'due', digits(due), 'fired', now_text,
    'src', source, 'kind', 'key', 'payload', payload, 'rule', item.rule, 'db', string.sub(member, 1, colon - 1),
    'proof', proof}
  for f = 1, fields and #fields or 0, 2 do add(entry, fields[f], fields[f + 1]) end
  entries[#entries + 1] = entry
  return due
end

