-- lib/fire: moves timers that are due from the index into the stream, and books it. KEYS are those of sweep and fire.
-- `ids` and their deadlines `dues` as text; at most 1,000. Answers how many had no record, or a wrong one.
local function fire(ids, dues, now, us, last, source)
  local records, flawed, foreign, fired = redis.call('HMGET', KEYS[2], unpack(ids)), 0, 0, digits(now)
  for i = 1, #ids do
    local record = read_record(records[i])
    records[i] = record
    if record[5] then flawed = flawed + 1 end
    if record[5] == 'no record' then foreign = foreign + 1 end
  end

  redis.call('HDEL', KEYS[2], '') -- a first write that Redis does not refuse at maxmemory: firing goes on
  for i = 1, #ids do
    local generation = records[i][1] or next_generation(us, last)
    put(KEYS[3], ids[i], digits(generation), dues[i], fired, source, records[i])
  end
  redis.call('ZREM', KEYS[1], unpack(ids))
  redis.call('HDEL', KEYS[2], unpack(ids))
  count(KEYS[4], 'fired_timers', #ids)
  count(KEYS[4], 'foreign', foreign)
  if last_generation then book('HSET', KEYS[4], 'last', digits(last_generation)) end
  return flawed
end

