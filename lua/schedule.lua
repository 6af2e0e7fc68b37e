-- schedule v1: arms or re-arms timers of one partition, in order; or asks whether a call did.
-- KEYS    1 index  2 timers  3 stream  4 tally  5.. key:<id> of each keyed timer, in the order given
-- ARGV    1 partitions of the queue  2 wake channel  3 '' or 'ask', then eight for each timer:
--         id, 'at' or 'in', ms, mode, payload, call, extras as MessagePack or '', '1' when keyed
--         modes: upsert absent present later earlier
-- ANSWER  {armed, {side error, for each a word, generation or 0, due ms or 0, generation that fired or 0}}
--         words: ARMED FIRED_OLD REPLACED PRESENT KEPT ABSENT DUE, MORE (too much payload to read: send it again);
--         for 'ask' HELD UNKNOWN
--         | {'PARTITIONS', {theirs}} | {'RANGE', {position}} | {'MODE', {position}}: nothing was written
local now, us = clock()
local tally = redis.call('HMGET', KEYS[4], 'last', 'partitions')
if tally[2] and tally[2] ~= ARGV[1] then return {'PARTITIONS', {tonumber(tally[2]) or 0}} end
redis.call('XLEN', KEYS[3])
redis.call('HLEN', KEYS[2])

local names = {}
for i = 4, #argv, 8 do names[#names + 1] = argv[i] end
local found, ask, answer, n = scores_of(KEYS[1], names), ARGV[3] == 'ask', {side}, 1
local most = ask and 2097152 or 1048576 -- a call's own records may all be read
for position = 1, #names do
  local id, at = names[position], 8 * position - 4
  local slot, mode, due, text = slots[id], argv[at + 3], deadline(argv[at + 1], argv[at + 2], now)
  if not due then return {'RANGE', {position - 1}} end
  if not MODES[mode] then return {'MODE', {position - 1}} end
  local score = slot and scores[2 * slot - 1] or found[position]
  local word, generation, old = 'MORE', 0, 0
  if read_bytes > most then
    due = 0
  elseif ask then
    local record = score and armed_record(id)
    word = record and record[3] == argv[at + 5] and 'HELD' or 'UNKNOWN'
    generation, due = record and record[1] or 0, score and tonumber(due_text(score)) or 0
  else
    word = decide(mode, score and tonumber(score), due, now)
    if word == 'ABSENT' then
      due = 0
    elseif word == 'PRESENT' or word == 'KEPT' or word == 'DUE' then
      generation, due = armed_record(id)[1] or 0, tonumber(due_text(score))
    else
      generation, old = arm(id, score, word, due, text, at, us, tally[1])
    end
  end
  answer[n + 1], answer[n + 2], answer[n + 3], answer[n + 4] = word, generation, due, old
  n = n + 4
end
if armed == 0 then return {0, answer} end

local earliest = write_armed(now)
count(KEYS[4], 'scheduled', scheduled)
count(KEYS[4], 'replaced', replaced)
count(KEYS[4], 'fired_timers', fired_old)
count(KEYS[4], 'foreign', foreign)
book('HSET', KEYS[4], 'last', digits(last_generation), 'partitions', ARGV[1])
wake(ARGV[2], KEYS[1], earliest, now)
answer[1] = side
return {armed, answer}
