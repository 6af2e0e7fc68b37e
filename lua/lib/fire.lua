-- lib/fire: moves timers that are due from the index into the stream, and books it. KEYS are those of sweep and fire.
-- The records of `ids`, in their order, up to so many bytes but at least one. While they are small, 16 are read at a time.
local function records_of(ids, most)
  local records, n, bytes, step = {}, 0, 0, 1
  while n < #ids do
    if step == 1 and n > 0 and bytes + redis.call('HSTRLEN', KEYS[2], ids[n + 1]) > most then break end
    local page, largest = redis.call('HMGET', KEYS[2], unpack(ids, n + 1, math.min(n + step, #ids))), 0
    for i = 1, #page do
      local size = page[i] and #page[i] or 0
      bytes = bytes + size
      if bytes > most and n > 0 then return records end
      n = n + 1
      records[n] = page[i]
      if size > largest then largest = size end
    end
    step = largest > 4096 and 1 or 16
  end
  return records
end
-- Fires as many of `ids` as there are `records`, at most 1,000; `dues` are their deadlines as text. `first`: they are the
-- first of the index. Answers how many had no record, or a wrong one.
local function fire(ids, dues, records, now, us, last, source, first)
  local n, flawed, foreign, generations, extras = #records, 0, 0, {}, {}
  for i = 1, n do
    local generation, payload, more = read_ours(records[i])
    if not generation then
      local record = read_record(records[i])
      generation, payload, more = record[1], record[2], record[4]
      if record[5] then flawed = flawed + 1 end
      if record[5] == 'no record' then foreign = foreign + 1 end
    end
    generations[i], records[i], extras[i] = format(WHOLE, generation or next_generation(us, last)), payload, more
  end

  redis.call('HDEL', KEYS[2], '') -- a first write that Redis does not refuse at maxmemory: firing goes on
  if first then redis.call('ZREMRANGEBYRANK', KEYS[1], 1, 0) end -- nothing: were it refused below, all would fire again
  put(KEYS[3], n, ids, generations, dues, records, extras, digits(now), source)
  if first then
    redis.call('ZREMRANGEBYRANK', KEYS[1], 0, n - 1)
  else
    redis.call('ZREM', KEYS[1], unpack(ids, 1, n))
  end
  redis.call('HDEL', KEYS[2], unpack(ids, 1, n))
  count(KEYS[4], 'fired_timers', n)
  count(KEYS[4], 'foreign', foreign)
  if last_generation then book('HSET', KEYS[4], 'last', digits(last_generation)) end
  return flawed
end
