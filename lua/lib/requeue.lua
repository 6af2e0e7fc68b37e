-- lib/requeue: moves entries into the retry index.
local NOT_EXTRA = {id = true, gen = true, payload = true, fired = true, group = true, attempt = true}
-- An entry without a readable id and generation can't be a retry: only a dead letter.
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
local records, scores, earliest = {}, {}, 1 / 0
-- Lets an entry wait until `due`; `more` is added to its attempt.
local function await(group, flat, fields, due, more)
  local member, n = group .. '/' .. fields.id .. '/' .. fields.gen, #records
  due = math.min(due, 7258118400000)
  records[n + 1], records[n + 2] = member, retry_record(flat, fields, more)
  scores[n + 1], scores[n + 2] = digits(due), member
  earliest = math.min(earliest, due)
end
-- Writes what waits and what leaves. KEYS are 1 stream  2 retry-index  3 retry-timers  4 tally.
local function write_retries(group, plain, channel, now)
  many(records, 'HSET', KEYS[3])
  -- A retry of the same generation may wait already, when a group was made anew: one of the two goes on.
  local merged = #scores / 2 - many(scores, 'ZADD', KEYS[2])
  write_leaving(KEYS[1], KEYS[4], group, plain)
  count(KEYS[4], 'discarded:' .. group, merged)
  wake(channel, KEYS[2], earliest, now)
end
-- Moves what is pending for a consumer, fenced. ARGV: 1 group  2 consumer  3 wake channel, then two for each: entry id,
-- delay ms. Words: OK LOST GONE.
local function requeue(more)
  local group, consumer, now, only, answer, seen = ARGV[1], ARGV[2], clock(), alone(KEYS[1]), {side}, {}
  redis.call('ZCARD', KEYS[2])
  redis.call('HLEN', KEYS[3])
  local plain = is_plain(KEYS[4], group)
  for i = 4, #ARGV, 2 do
    local id, delay, word = ARGV[i], tonumber(ARGV[i + 1]), 'LOST'
    if not seen[id] and owned(KEYS[1], group, consumer, id) then
      local flat, fields = entry(KEYS[1], id)
      word = not flat and 'GONE' or readable(fields) and 'OK' or 'LOST'
      if word ~= 'LOST' then
        seen[id] = true
        leave(group, only, id, fields)
      end
      if word == 'OK' then await(group, flat, fields, now + delay, more) end
    end
    answer[#answer + 1] = word
  end
  if #acks == 0 then return {0, answer} end

  redis.call('HDEL', KEYS[3], '') -- a first write that Redis does not refuse at maxmemory
  write_retries(group, plain, ARGV[3], now)
  answer[1] = side
  return {#scores / 2, answer}
end

