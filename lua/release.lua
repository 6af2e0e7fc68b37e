-- release v1: hands delivered timeouts back: into the retry index, due now, with the same attempt. Fenced.
-- KEYS    1 stream  2 retry-index  3 retry-timers  4 tally
-- ARGV    1 group  2 consumer  3 wake channel  4.. entry ids
-- ANSWER  {moved, {side error, a word for each}}
--         words: OK  LOST (not pending for this consumer: nothing was written)  GONE (deleted by somebody: acknowledged)
-- The caller keeps a call within 256 entries and 1 MiB of payload.
local items = {}
for i = 4, #ARGV do items[#items + 1] = {ARGV[i], 0} end
return requeue(ARGV[1], ARGV[2], ARGV[3], items, 0)
