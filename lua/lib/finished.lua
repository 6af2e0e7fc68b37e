-- lib/finished: what every group of a stream has finished.
local function parts(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq), ms
end
local function before(a, b) -- is entry id a before b?
  local a_ms, a_seq = parts(a)
  local b_ms, b_seq = parts(b)
  if a_ms ~= b_ms then return a_ms < b_ms end
  return a_seq < b_seq
end
-- The first entry that the group has not finished: its first pending, or what follows the last delivered.
local function unfinished(stream, group)
  if group.pending > 0 then return redis.call('XPENDING', stream, group.name)[2] end
  local _, seq, ms = parts(group.read)
  return seq < 9e15 and string.format('%s-%.0f', ms, seq + 1) or group.read
end
-- The earliest entry id of a list.
local function earliest(ids)
  local first = ids[1]
  for i = 2, #ids do
    if before(ids[i], first) then first = ids[i] end
  end
  return first
end
-- Of a page of entries that every group has been given: those that are pending for none.
local function finished(stream, groups, page)
  local busy, ids, last = {}, {}, page[#page][1]
  for _, group in ipairs(groups) do
    local pending = redis.call('XPENDING', stream, group.name, page[1][1], page[#page][1], 1000)
    for _, row in ipairs(pending) do busy[row[1]] = true end
    if #pending == 1000 then last = earliest({last, pending[1000][1]}) end -- behind it nothing is known
  end
  for _, one in ipairs(page) do
    if not busy[one[1]] and not before(last, one[1]) then ids[#ids + 1] = one[1] end
  end
  return ids
end
-- Counts in `done` what was deleted of a page, for each of the plain groups that it was for.
local function count_done(page, ids, plain, done)
  local i = 1 -- `ids` are some of the page, in its order
  for _, one in ipairs(page) do
    if one[1] == ids[i] then
      i = i + 1
      for _, name in ipairs(plain) do
        if for_group(one[2], name) then done[name] = (done[name] or 0) + 1 end
      end
    end
  end
end

