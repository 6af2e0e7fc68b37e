-- settle v1: applies what touches and events say of watched keys, in the order given, each at its position.
-- KEYS    1 watched  2 looked  3 fired  4 stream  5 tally  6 last
-- ARGV    six for each: op, <db>:<key>, position us, value, rule, extra
--         L, R  a touch found it so; R when an event that removes asked for it. Value: due ms, -1 (no TTL), -2 (gone);
--               extra: a packed value, or ''
--         E, V  it expired; it was evicted.  P  a touch made it expire: its position + 1
--         U, D  it was gone at its due, and all events before that are applied: fire; drop
--               value of all five: 'none', 'last' (what the last look captured), 'given' (extra: a packed value)
-- ANSWER  {fired, {side error, now ms, then for each a word and its due ms or 0}}
--         words: OK GONE WAIT STALE (L, R)  FIRED FIRED_OLD DUP PAID (E, V, P)  UNPROVEN DROPPED DONE STALE GONE (U, D)
--         OLD (too old to be told from what was forgotten)  MORE (the page of captured values is full: send it again)
-- The caller keeps a call within 256 items, and 1 MiB of names and extras.
-- It may be repeated when its outcome is unknown: names and positions make it do nothing twice.
local RULES = {L = look, R = look, E = fire, V = fire, P = fire, U = barrier, D = barrier}
local horizon, answer, item = read_watched({E = true, V = true, P = true}), {side, now}, {}
for i = 1, #ARGV, 6 do -- with one table for all items: a new one for each costs 0.3 us
  item.op, item.at, item.text = ARGV[i], tonumber(ARGV[i + 2]), ARGV[i + 2]
  item.value, item.rule, item.extra = ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]
  local member, word, due = ARGV[i + 1], 'MORE', nil
  local one = known[member]
  if not one.held then word, due = RULES[item.op](one, item, member, horizon) end
  one.held = word == 'MORE' -- what is said later of the same key must come later
  add(answer, word, due or 0)
end

redis.call('HDEL', KEYS[5], '') -- a first write that Redis does not refuse at maxmemory: firing goes on
for _, entry in ipairs(entries) do redis.call('XADD', KEYS[4], unpack(entry)) end
many(new_names, 'ZADD', KEYS[3])
local earliest = write_watched()
count(KEYS[5], 'watched_fired', fired)
count(KEYS[5], 'watched_unproven', unproven)
count(KEYS[5], 'watched_dropped', dropped)
if earliest <= now + 2000 then -- those that wait for proof stand before it: it is the first of those to come
  local first = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. digits(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if tonumber(first[2]) == earliest then book('PUBLISH', string.sub(KEYS[1], 1, -8) .. 'wake', digits(earliest)) end
end
answer[1] = side
return {fired, answer}
