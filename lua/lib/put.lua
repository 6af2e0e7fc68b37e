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

