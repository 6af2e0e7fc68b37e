-- complete v1: acknowledges entries; deletes those that are addressed to this group, or whose only group it is.
-- KEYS    1 stream  2 tally
-- ARGV    1 group, then two for each: entry id, 'all' | 'ours' (addressed to this group) | 'other' (to another)
-- ANSWER  {done, {side error, positions (from 1) that were not pending any more}}
-- Not fenced: who finishes first acknowledges. What is addressed to another group is passed over: not counted, not deleted.
local group, groups, done, lost, deletes = ARGV[1], stream_groups(KEYS[1]), 0, {}, {}
redis.call('HLEN', KEYS[2])
for i = 2, #ARGV, 2 do
  local id, whose = ARGV[i], ARGV[i + 1]
  if redis.call('XACK', KEYS[1], group, id) == 0 then
    lost[#lost + 1] = i / 2
  elseif whose ~= 'other' then
    done = done + 1
    if #groups == 1 or whose == 'ours' then deletes[#deletes + 1] = id end
  end
end
if #groups == 1 and #deletes > 8 then
  -- Whole nodes of the stream, up to the first entry that is not finished, go at a fraction of the cost of XDEL.
  local first = redis.call('XPENDING', KEYS[1], group)[2] or groups[1].read
  redis.call('XTRIM', KEYS[1], 'MINID', '~', first, 'LIMIT', 1000)
end
many(deletes, 'XDEL', KEYS[1])
count(KEYS[2], 'done:' .. group, done)
return {done, {side, unpack(lost)}}
