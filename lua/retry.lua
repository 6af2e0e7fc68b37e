-- retry v2: moves delivered timeouts into the retry index, each with its next attempt. Fenced.
-- KEYS    1 stream  2 retry-index  3 retry-timers  4 tally
-- ARGV    1 group  2 consumer  3 wake channel, then two for each: entry id, delay ms
-- ANSWER  {moved, {side error, a word for each}}
--         words: OK  LOST (not pending for this consumer: nothing was written)  GONE (deleted by somebody: acknowledged)
-- The caller keeps a call within 256 entries and 1 MiB of payload.
return requeue(1)
