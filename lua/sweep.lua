-- sweep v1: fires one page of what is due from the index.
-- KEYS    1 index  2 timers  3 stream  4 tally
-- ARGV    1 the most timers  2 the most payload, bytes  3 grace, ms  4 name of this process
-- ANSWER  {fired, {side error, now ms, next due ms or 0, more 0|1, another 0|1, flawed, due ms joined by ','}}
--         another: a different process fired here within the last 100 ms

-- The deadlines of the first `n` of `ids`, as text. A score is dear to print: those that stand between two that are alike,
-- as many are in a burst, are not asked for.
local function dues_of(ids, n)
  local asked, dues, open = {}, {}, {}
  for i = 1, n, 16 do asked[#asked + 1] = ids[i] end
  asked[#asked + 1] = ids[n]
  local ends = redis.call('ZMSCORE', KEYS[1], unpack(asked))
  for block = 1, #ends - 1 do
    local from, due, alike = 16 * block - 15, due_text(ends[block]), ends[block] == ends[block + 1]
    for i = from, math.min(from + 15, n) do
      dues[i] = due
      if not alike and i > from then open[#open + 1] = i end
    end
  end
  if #open > 0 then
    asked = {}
    for at, i in ipairs(open) do asked[at] = ids[i] end
    for at, score in ipairs(redis.call('ZMSCORE', KEYS[1], unpack(asked))) do dues[open[at]] = due_text(score) end
  end
  return dues
end

local now, us = clock()
local horizon = now - ARGV[3]
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', digits(horizon), 'LIMIT', 0, ARGV[1])
local tally = redis.call('HMGET', KEYS[4], 'last', 'last_sweeper')
redis.call('XLEN', KEYS[3])
redis.call('HLEN', KEYS[2])

local records, dues, flawed = records_of(ids, tonumber(ARGV[2])), {}, 0
if #records > 0 then
  dues = dues_of(ids, #records)
  flawed = fire(ids, dues, records, now, us, tally[1], 'index', true)
  book('HSET', KEYS[4], 'last_sweeper', ARGV[4] .. ':' .. digits(now))
end

local first, more = next_due(KEYS[1], horizon)
local who, at = string.match(tally[2] or '', '^(.*):(%d+)$')
local another = who and who ~= ARGV[4] and now - at <= 100 and 1 or 0
return {#records, {side, now, first, more, another, flawed, table.concat(dues, ',')}}
