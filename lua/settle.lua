-- settle v2: applies what touches and events say of watched keys, in the order given, each at its position.
-- KEYS    1 watched  2 looked  3 fired  4 stream  5 tally  6 last
-- ARGV    runs of items that are alike: op, position us, value, rule, how many, then for each its <db>:<key> and
--         L, R  a touch found it so; R when an event that removes asked for it: due ms, -1 (no TTL), -2 (gone); a packed
--               value, or ''
--         E, V  it expired; it was evicted.  P  a touch made it expire: its position + 1
--         U, D  it was gone at its due, and all events before that are applied: fire; drop
--               value of all five: 'none', 'last' (what the last look captured), 'given': a packed value for each
-- ANSWER  {fired, {side error, now ms, then for each a word and its due ms or 0}}
--         words: OK GONE WAIT STALE (L, R)  FIRED FIRED_OLD DUP PAID (E, V, P)  UNPROVEN DROPPED DONE STALE GONE (U, D)
--         OLD (too old to be told from what was forgotten)  MORE (the page of captured values is full: send it again)
-- The caller keeps a call within 256 items, and 1 MiB of names and packed values.
-- It may be repeated when its outcome is unknown: names and positions make it do nothing twice.
local RULES, FIRING = {L = look, R = look, E = fire, V = fire, P = fire, U = barrier, D = barrier}, {E = 1, V = 1, P = 1}
local horizon, answer, n, from = read_watched(FIRING), {side, now}, 2, 1
while from < #argv do
  op, text, value, rule = argv[from], argv[from + 1], argv[from + 2], argv[from + 3]
  at = tonumber(text)
  local apply, one_more, step = RULES[op], FIRING[op] or 0, width(op, value)
  local upto = from + 4 + argv[from + 4] * step
  for i = from + 5, upto, step do
    if step == 3 then value, extra = argv[i + 1], argv[i + 2] elseif step == 2 then extra = argv[i + 1] end
    local member, word, due = argv[i], 'MORE', nil
    local one = known[member]
    told = told + one_more
    if not one.held then word, due = apply(one, member, horizon) end
    if word == 'MORE' then one.held = true end -- what is said later of the same key must come later
    answer[n + 1], answer[n + 2], n = word, due or 0, n + 2
  end
  from = upto + 1
end

call('HDEL', KEYS[5], '') -- a first write that Redis does not refuse at maxmemory: firing goes on
write_entries()
many(new_names, 'ZADD', KEYS[3])
local earliest = write_watched()
count(KEYS[5], 'watched_fired', fired)
count(KEYS[5], 'watched_unproven', unproven)
count(KEYS[5], 'watched_dropped', dropped)
if earliest <= now + 2000 then -- those that wait for proof stand before it: it is the first of those to come
  local first = call('ZRANGEBYSCORE', KEYS[1], '(' .. digits(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if tonumber(first[2]) == earliest then book('PUBLISH', string.sub(KEYS[1], 1, -8) .. 'wake', digits(earliest)) end
end
answer[1] = side
return {fired, answer}
