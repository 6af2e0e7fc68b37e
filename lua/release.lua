-- release v2: hands delivered timeouts back: into the retry index, each after a while, with the same attempt. Fenced.
-- KEYS    1 stream  2 retry-index  3 retry-timers  4 tally
-- ARGV    1 group  2 consumer  3 wake channel, then two for each: entry id, delay ms (0: due now)
-- ANSWER  {moved, {side error, a word for each}}
--         words: OK  LOST (not pending for this consumer: nothing was written)  GONE (deleted by somebody: acknowledged)
-- The caller keeps a call within 256 entries and 1 MiB of payload.
return requeue(0)
