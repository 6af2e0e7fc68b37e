-- lib/put: puts timers into the stream. The caller has read everything, and removes them afterwards.
-- The deadline of a score, as text. `score` is as Redis gave it; a foreign one may be no whole number in our bounds.
local function due_text(score)
  local n = tonumber(score)
  if n >= 1 and n <= 7258118400000 then
    if n % 1 == 0 then return score end
    return string.format('%.0f', math.floor(n))
  end
  return n < 1 and '1' or '7258118400000'
end
-- `fired`, `generations` and `dues` as text: a number would be turned into text again for each field. `extras` are those
-- of their records: most are one name and its value.
local function put(stream, n, ids, generations, dues, payloads, extras, fired, source)
  local call = redis.call
  for i = 1, n do
    local more = extras[i]
    if #more == 2 then
      call('XADD', stream, '*', 'id', ids[i], 'gen', generations[i], 'due', dues[i], 'fired', fired,
        'src', source, 'kind', 'timer', 'payload', payloads[i], more[1], more[2])
    else
      call('XADD', stream, '*', 'id', ids[i], 'gen', generations[i], 'due', dues[i], 'fired', fired,
        'src', source, 'kind', 'timer', 'payload', payloads[i], unpack(more))
    end
  end
end
-- The first deadline of an index, or 0 when there is none; and whether it is not behind `horizon`.
local function next_due(index, horizon)
  local first = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')[2]
  if not first then return 0, 0 end
  return tonumber(due_text(first)), tonumber(first) <= horizon and 1 or 0
end

