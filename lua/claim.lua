-- claim v2: takes over one page of entries whose lease ran out, or finds one's own that are not in hand.
-- KEYS    1 stream
-- ARGV    1 group  2 consumer  3 'others' | 'alone' (others', to be run alone) | 'own' | 'among' (one's own in hand,
--         begun alone, goes on among others: the counter is taken back by 1, nothing is claimed)  4 lease, ms (others')
--         5 after this entry id  6 the most entries; 0 only looks for the first of others'
--         7 the most payload, bytes  8.. entry ids in hand (own, among)
-- ANSWER  {claimed, {id to go on after or '', gone, then for each {id, fields, holder, deliveries}}}
--         gone: deleted by somebody while pending; acknowledged. After a look the id is that of the first one
-- Redis' delivery counter begins at 1; here only 'alone' adds to it: so it tells how often an entry was begun alone.
local stream, group, consumer, own = KEYS[1], ARGV[1], ARGV[2], ARGV[3] == 'own'
local limit, most, more, in_hand = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[3] == 'alone' and 1 or 0, {}
for i = 8, #ARGV do in_hand[ARGV[i]] = true end
if ARGV[3] == 'among' then
  for id in pairs(in_hand) do
    local row = redis.call('XPENDING', stream, group, id, id, 1, consumer)[1]
    if row and row[4] > 1 then
      redis.call('XCLAIM', stream, group, consumer, 0, id, 'RETRYCOUNT', row[4] - 1, 'JUSTID')
    end
  end
  return {0, {'', 0}}
end
local pending
if own then
  pending = redis.call('XPENDING', stream, group, '(' .. ARGV[5], '+', limit, consumer)
else -- one's own stand among them: a page of more, so that they hide no other
  pending = redis.call('XPENDING', stream, group, 'IDLE', ARGV[4], '(' .. ARGV[5], '+', math.max(limit, 256))
end

local found, gone, bytes, last = {}, {}, 0, ''
for _, row in ipairs(pending) do
  local id, holder, deliveries = row[1], row[2], row[4]
  local wanted = own and not in_hand[id] or not own and holder ~= consumer
  if limit == 0 and wanted then return {0, {id, 0}} end
  if bytes > most or limit > 0 and #found + #gone == limit then break end
  last = id
  if wanted then
    local flat, fields = entry(stream, id)
    if flat then
      bytes = bytes + #(fields.payload or '') + #(fields.id or '') -- a watched key's name may be as large
      found[#found + 1] = {id, flat, holder, deliveries + more}
    else
      gone[#gone + 1] = id
    end
  end
end
if limit == 0 then return {0, {'', 0}} end
-- With JUSTID, for without it Redis would send the fields once more.
for _, one in ipairs(found) do
  redis.call('XCLAIM', stream, group, consumer, 0, one[1], 'RETRYCOUNT', one[4], 'JUSTID')
end
many(gone, 'XACK', stream, group)
local behind = #pending == math.max(limit, own and 1 or 256) or #pending > 0 and last ~= pending[#pending][1]
return {#found, {behind and last or '', #gone, unpack(found)}}
