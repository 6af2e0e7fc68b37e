-- complete v2: acknowledges entries; deletes those that are addressed to this group, or whose only group it is.
-- KEYS    1 stream  2 tally  3.. history, when it is kept
-- ARGV    1 group  2 consumer  3 the most entries of the history, 0 for none, then two for each: entry id,
--         'all' | 'ours' (addressed to this group) | 'other' (to another)
-- ANSWER  {done, {side error, positions (from 1) that were not pending any more}}
-- Not fenced: who finishes first acknowledges. What is addressed to another group is passed over: not counted, not deleted.
local stream, group, groups, most = KEYS[1], ARGV[1], stream_groups(KEYS[1]), tonumber(ARGV[3])
local plain, now = is_plain(KEYS[2], group), nil
if most > 0 then
  now = clock()
  redis.call('XLEN', KEYS[3])
end
local call, args, only, done, lost, deletes = redis.call, ARGV, #groups == 1, 0, {}, {}
for i = 4, #args, 2 do
  local id, whose = args[i], args[i + 1]
  if call('XACK', stream, group, id) == 0 then
    lost[#lost + 1] = (i - 2) / 2
  elseif whose ~= 'other' then
    done = done + 1
    if only or whose == 'ours' then deletes[#deletes + 1] = id end
    if most > 0 then
      local _, fields = entry(stream, id)
      if fields then remember(KEYS[3], most, group, args[2], now, fields) end
    end
  end
end
local deleted = 0
if only and #deletes > 8 and not plain then
  -- What is before the first entry that is not finished goes at a fraction of the cost of XDEL: whole nodes of the stream,
  -- and when they did not reach the limit, the rest, which is within one node. They are the oldest: the others are looked
  -- for from the end, until all are found. (What others acknowledged by XACK alone goes too; then as many of these may stay
  -- for `trim`.)
  local first = call('XPENDING', stream, group)[2] or groups[1].read
  local trimmed, upto = call('XTRIM', stream, 'MINID', '~', first, 'LIMIT', 1000), #deletes
  if trimmed <= 900 then trimmed = trimmed + call('XTRIM', stream, 'MINID', first) end
  local left = #deletes - trimmed
  while left > 0 and upto > 0 do
    local from = math.max(upto - 31, 1)
    left = left - call('XDEL', stream, unpack(deletes, from, upto))
    upto = from - 1
  end
else
  deleted = many(deletes, 'XDEL', stream)
end
count(KEYS[2], 'done:' .. group, plain and deleted or done)
return {done, {side, unpack(lost)}}
