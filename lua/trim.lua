-- trim v2: deletes what every group has finished, and dead letters beyond their bounds.
-- KEYS    1 stream  2 dead  3 tally
-- ARGV    1 the most dead letters  2 how long a dead letter is kept, ms
-- ANSWER  {deleted, {side error, entries left, more 0|1, dead letters deleted}}
-- First what lies before the first entry that some group has not finished, up to about 10,000; then up to 1,000
-- behind it, a few at a time, for their payloads come along. Without a group nothing is deleted.
-- For plain groups it is here that an entry counts as done: then all goes a few at a time, up to 1,000.
local now, deleted, more, plain, done = clock(), 0, 0, {}, {}
redis.call('XLEN', KEYS[2])
redis.call('HLEN', KEYS[3])
local groups, reads, firsts = stream_groups(KEYS[1]), {}, {}
for i, group in ipairs(groups) do
  reads[i], firsts[i] = group.read, unfinished(KEYS[1], group)
  if is_plain(KEYS[3], group.name) then plain[#plain + 1] = group.name end
end
if #groups > 0 and redis.call('XLEN', KEYS[1]) > 0 then
  local bound, read = earliest(firsts), earliest(reads)
  if #plain > 0 then
    bound = '0-1'
  else
    deleted = redis.call('XTRIM', KEYS[1], 'MINID', '~', bound, 'LIMIT', 10000)
    if deleted < 9000 then
      deleted = deleted + redis.call('XTRIM', KEYS[1], 'MINID', bound)
    else
      more = 1
    end
  end
  local seen, bytes, from, behind = 0, 0, bound, more == 0 and not before(read, bound)
  local pace = 1 -- 20 payloads of 1 MiB hold the server up for 80 ms: it grows while they are small
  while behind and seen < 1000 and bytes < 1048576 do
    local page, carried = redis.call('XRANGE', KEYS[1], from, read, 'COUNT', pace), bytes
    behind = #page == pace and page[#page][1] ~= read
    if #page == 0 then break end
    local ids = finished(KEYS[1], groups, page)
    if #ids > 0 then
      deleted = deleted + redis.call('XDEL', KEYS[1], unpack(ids))
      count_done(page, ids, plain, done)
    end
    for _, one in ipairs(page) do
      seen, from = seen + 1, '(' .. one[1]
      for f = 2, #one[2], 2 do bytes = bytes + #one[2][f] end
    end
    pace = math.max(1, math.min(20, 2 * pace, math.floor((1048576 - bytes) * #page / (bytes - carried + 1))))
  end
  if #plain > 0 and behind and deleted > 0 then more = 1 end
  for name, n in pairs(done) do count(KEYS[3], 'done:' .. name, n) end
end

local dead, dead_deleted = redis.call('XLEN', KEYS[2]), 0
if dead > 0 then
  dead_deleted = redis.call('XTRIM', KEYS[2], 'MAXLEN', math.max(tonumber(ARGV[1]), dead - 1000))
  local oldest = digits(math.max(0, now - ARGV[2]))
  dead_deleted = dead_deleted + redis.call('XTRIM', KEYS[2], 'MINID', '~', oldest, 'LIMIT', 1000)
  if dead_deleted < 900 then dead_deleted = dead_deleted + redis.call('XTRIM', KEYS[2], 'MINID', oldest) end
  count(KEYS[3], 'dead_trimmed', dead_deleted)
end
return {deleted, {side, redis.call('XLEN', KEYS[1]), more, dead_deleted}}
