-- claim v1: takes over one page of entries whose lease ran out, or finds one's own that are not in hand.
-- KEYS    1 stream
-- ARGV    1 group  2 consumer  3 'others' or 'own'  4 lease, ms (others)  5 after this entry id
--         6 the most entries  7 the most payload, bytes  8.. entry ids in hand (own)
-- ANSWER  {claimed, {id to go on after or '', gone, then for each {id, fields, holder, deliveries}}}
--         gone: deleted by somebody while pending; acknowledged
local stream, group, consumer, own = KEYS[1], ARGV[1], ARGV[2], ARGV[3] == 'own'
local limit, most, in_hand = tonumber(ARGV[6]), tonumber(ARGV[7]), {}
for i = 8, #ARGV do in_hand[ARGV[i]] = true end
local pending
if own then
  pending = redis.call('XPENDING', stream, group, '(' .. ARGV[5], '+', limit, consumer)
else
  pending = redis.call('XPENDING', stream, group, 'IDLE', ARGV[4], '(' .. ARGV[5], '+', limit)
end

local found, gone, bytes, last = {}, {}, 0, ''
for _, row in ipairs(pending) do
  local id, holder, deliveries = row[1], row[2], row[4]
  if bytes > most then break end
  last = id
  if own and not in_hand[id] or not own and holder ~= consumer then
    local flat, fields = entry(stream, id)
    if flat then
      bytes = bytes + #(fields.payload or '') + #(fields.id or '') -- a watched key's name may be as large
      found[#found + 1] = {id, flat, holder, own and deliveries or deliveries + 1}
    else
      gone[#gone + 1] = id
    end
  end
end
-- With JUSTID, for without it Redis would send the fields once more.
for _, one in ipairs(found) do
  redis.call('XCLAIM', stream, group, consumer, 0, one[1], 'RETRYCOUNT', one[4], 'JUSTID')
end
many(gone, 'XACK', stream, group)
local behind = #pending == limit or #pending > 0 and last ~= pending[#pending][1]
return {#found, {behind and last or '', #gone, unpack(found)}}
