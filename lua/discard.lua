-- discard v2: takes waiting retries and fired timeouts out by hand.
-- KEYS    1 stream  2 retry-index  3 retry-timers  4 tally
-- ARGV    three for each: 'retry', member, '' | 'entry', entry id, group
-- ANSWER  {discarded, {side error, a word for each}}
--         words: OK  ABSENT (not there, or finished by the group)  UNREAD (other groups need it, this one has not read it)
local groups, answer, seen = stream_groups(KEYS[1]), {side}, {}
local retries, deletes, acks, by_group, staying, discarded = {}, {}, {}, {}, {}, 0
redis.call('ZCARD', KEYS[2])
redis.call('HLEN', KEYS[3])
redis.call('HLEN', KEYS[4])
for i = 1, #ARGV, 3 do
  local what, name, group, word = ARGV[i], ARGV[i + 1], ARGV[i + 2], 'ABSENT'
  local known = what == 'entry' and group_of(groups, group)
  if seen[name .. group] then
    word = 'ABSENT'
  elseif what == 'retry' and redis.call('ZSCORE', KEYS[2], name) then
    word, group = 'OK', string.match(name, '^([^/]*)/') or ''
    retries[#retries + 1] = name
  elseif known then
    local flat, fields = entry(KEYS[1], name)
    local ours = flat and fields.group == group
    if ours or flat and not fields.group then
      local pending = #redis.call('XPENDING', KEYS[1], group, name, name, 1) > 0
      local unread = before(known.read, name)
      if pending then acks[#acks + 1] = {group, name} end
      if pending or unread and (ours or #groups == 1) then
        word = 'OK'
        if ours or #groups == 1 then
          deletes[#deletes + 1] = name
        elseif is_plain(KEYS[4], group) then
          staying[group] = (staying[group] or 0) + 1 -- it will count as done when it is deleted
        end
      elseif unread then
        word = 'UNREAD'
      end
    end
  end
  if word == 'OK' then
    seen[name .. ARGV[i + 2]] = true
    discarded = discarded + 1
    by_group[group] = (by_group[group] or 0) + 1
  end
  answer[#answer + 1] = word
end
many(retries, 'ZREM', KEYS[2])
many(retries, 'HDEL', KEYS[3])
for _, one in ipairs(acks) do redis.call('XACK', KEYS[1], one[1], one[2]) end
many(deletes, 'XDEL', KEYS[1])
for group, n in pairs(by_group) do count(KEYS[4], 'discarded:' .. group, n) end
for group, n in pairs(staying) do count(KEYS[4], 'done:' .. group, -n) end
answer[1] = side
return {discarded, answer}
