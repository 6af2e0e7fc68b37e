-- client/get v1: the timer that is armed. Changes nothing.
-- KEYS    1 index  2 timers
-- ARGV    1 id
-- ANSWER  {1, {generation or 0, due ms, payload, encoding or '', trace or '', flaw or ''}}  or  {0, {}} when it is not armed
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score then return {0, {}} end
local record = read_record(redis.call('HGET', KEYS[2], ARGV[1]))
local extras = {}
for i = 1, #record[4], 2 do extras[record[4][i]] = record[4][i + 1] end
return {1, {record[1] or 0, tonumber(due_text(score)), record[2], extras.enc or '', extras.trace or '', record[5] or ''}}
