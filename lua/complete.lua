-- complete v2: acknowledges entries; deletes those that are addressed to this group, or whose only group it is.
-- KEYS    1 stream  2 tally  3.. history, when it is kept
-- ARGV    1 group  2 consumer  3 the most entries of the history, 0 for none, then two for each: entry id,
--         'all' | 'ours' (addressed to this group) | 'other' (to another)
-- ANSWER  {done, {side error, positions (from 1) that were not pending any more}}
-- Not fenced: who finishes first acknowledges. What is addressed to another group is passed over: not counted, not deleted.
local group, groups, most, done, lost, deletes = ARGV[1], stream_groups(KEYS[1]), tonumber(ARGV[3]), 0, {}, {}
local plain, now = is_plain(KEYS[2], group), nil
if most > 0 then
  now = clock()
  redis.call('XLEN', KEYS[3])
end
for i = 4, #ARGV, 2 do
  local id, whose = ARGV[i], ARGV[i + 1]
  if redis.call('XACK', KEYS[1], group, id) == 0 then
    lost[#lost + 1] = (i - 2) / 2
  elseif whose ~= 'other' then
    done = done + 1
    if #groups == 1 or whose == 'ours' then deletes[#deletes + 1] = id end
    local _, fields
    if most > 0 then _, fields = entry(KEYS[1], id) end
    if fields then remember(KEYS[3], most, group, ARGV[2], now, fields) end
  end
end
if #groups == 1 and #deletes > 8 and not plain then
  -- Whole nodes of the stream, up to the first entry that is not finished, go at a fraction of the cost of XDEL.
  local first = redis.call('XPENDING', KEYS[1], group)[2] or groups[1].read
  redis.call('XTRIM', KEYS[1], 'MINID', '~', first, 'LIMIT', 1000)
end
local deleted = many(deletes, 'XDEL', KEYS[1])
count(KEYS[2], 'done:' .. group, plain and deleted or done)
return {done, {side, unpack(lost)}}
