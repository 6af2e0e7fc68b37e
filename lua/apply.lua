-- apply v1: acknowledges timeouts with effects, one after the other: of each all effects or none. Fenced.
-- KEYS    1 stream  2 dead  3 tally  4.. keys of the effects, in their order, none for PUBLISH; at the end history, when
--         it is kept
-- ARGV    1 group  2 consumer  3 the most entries of the history, 0 for none, then for each timeout: entry id, number of
--         effects, and for each of them its command, number of arguments but the key, arguments
-- ANSWER  {done, {side error, for each a word and a text}}
--         words: OK  LOST (not pending for this consumer: nothing was written)  GONE (deleted by somebody: acknowledged,
--         no effect)  REFUSED (an effect can't be applied, the text says which and why: nothing was written)
--         INCOMPLETE (an effect failed although all was checked: those behind it are skipped, the timeout is a dead letter)
-- The caller keeps a call within 256 entries, 1,000 effects, and 1 MiB of payload and effects.
local stream, tally, group, consumer, most = KEYS[1], KEYS[3], ARGV[1], ARGV[2], tonumber(ARGV[3])
local only, plain, answer, done, booked, at, key = alone(stream), is_plain(tally, group), {side}, 0, 0, 4, 4
redis.call('XLEN', KEYS[2])
if most > 0 then redis.call('XLEN', KEYS[#KEYS]) end
while at <= #ARGV do
  local id, effects, word, text = ARGV[at], nil, 'LOST', ''
  effects, at, key = read_effects(at + 1, key)
  if owned(stream, group, consumer, id) then
    local flat, fields = entry(stream, id)
    local wrong = flat and refusal(effects)
    if wrong then
      word, text = 'REFUSED', wrong
    else
      -- The first write is one that Redis does not refuse at maxmemory: what is finished makes room.
      redis.call('XACK', stream, group, id)
      word, text = 'GONE', flat and perform(effects)
    end
    if flat and not wrong then
      local deleted = only or fields.group == group
      if deleted then redis.call('XDEL', stream, id) end
      if text then
        word = 'INCOMPLETE'
        letter(group, 'effects_incomplete', text, now, consumer, id, flat)
        if plain and not deleted then booked = booked - 1 end
      else
        word, done = 'OK', done + 1
        if deleted or not plain then booked = booked + 1 end
        if most > 0 then remember(KEYS[#KEYS], most, group, consumer, now, fields) end
      end
    end
  end
  answer[#answer + 1] = word
  answer[#answer + 1] = text or ''
end
local buried = 0
for _, fields in ipairs(letters) do
  if book('XADD', KEYS[2], '*', unpack(fields)) then buried = buried + 1 end
end
count(tally, 'buried:' .. group, buried)
count(tally, 'done:' .. group, booked)
answer[1] = side
return {done, answer}
