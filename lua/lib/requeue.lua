-- lib/requeue: moves entries that are pending for a consumer into the retry index, fenced.
-- `items` are {entry id, delay ms}; `more` is added to the attempt. Words: OK LOST GONE.
-- An entry without a readable id and generation stays where it is, LOST: only `bury` takes it.
local NOT_EXTRA = {id = true, gen = true, payload = true, fired = true, group = true, attempt = true}
local function readable(fields)
  return #(fields.id or '') > 0 and string.find(fields.gen or '', '^%d+$') and tonumber(fields.gen) < 9e15
end
local function retry_record(flat, fields, more)
  local extras = {}
  for f = 1, #flat, 2 do
    if not NOT_EXTRA[flat[f]] and #extras < 62 then -- a record holds 32 extras
      extras[#extras + 1] = flat[f]
      extras[#extras + 1] = flat[f + 1]
    end
  end
  extras[#extras + 1] = 'attempt'
  extras[#extras + 1] = digits((tonumber(fields.attempt) or 1) + more)
  return pack_record(tonumber(fields.gen), fields.payload or '', '', cmsgpack.pack(extras))
end
local function requeue(group, consumer, channel, items, more)
  local now, only, answer, seen, earliest = clock(), alone(KEYS[1]), {side}, {}, 1 / 0
  local records, scores, acks, deletes = {}, {}, {}, {}
  redis.call('ZCARD', KEYS[2])
  redis.call('HLEN', KEYS[3])
  redis.call('HLEN', KEYS[4])
  for _, item in ipairs(items) do
    local id, word = item[1], 'LOST'
    if not seen[id] and owned(KEYS[1], group, consumer, id) then
      local flat, fields = entry(KEYS[1], id)
      word = not flat and 'GONE' or readable(fields) and 'OK' or 'LOST'
      if word ~= 'LOST' then
        seen[id] = true
        acks[#acks + 1] = id
        if only or flat and fields.group == group then deletes[#deletes + 1] = id end
      end
      if word == 'OK' then
        local member, due = group .. '/' .. fields.id .. '/' .. fields.gen, math.min(now + item[2], 7258118400000)
        local n = #records
        records[n + 1], records[n + 2] = member, retry_record(flat, fields, more)
        scores[n + 1], scores[n + 2] = digits(due), member
        earliest = math.min(earliest, due)
      end
    end
    answer[#answer + 1] = word
  end
  if #acks == 0 then return {0, answer} end

  redis.call('HDEL', KEYS[3], '') -- a first write that Redis does not refuse at maxmemory
  many(records, 'HSET', KEYS[3])
  -- A retry of the same generation may wait already, when a group was made anew: one of the two goes on.
  local merged = #scores / 2 - many(scores, 'ZADD', KEYS[2])
  many(acks, 'XACK', KEYS[1], group)
  many(deletes, 'XDEL', KEYS[1])
  count(KEYS[4], 'discarded:' .. group, merged)
  wake(channel, KEYS[2], earliest, now)
  answer[1] = side
  return {#scores / 2, answer}
end

