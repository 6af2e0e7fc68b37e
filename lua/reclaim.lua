-- reclaim v1: of a plain group, moves what was held for longer than the lease to the retry index, or the dead letters.
-- KEYS    1 stream  2 retry-index  3 retry-timers  4 tally  5 dead
-- ARGV    1 group  2 wake channel  3 lease, ms  4 the most attempts  5 the first wait, ms  6 the longest wait, ms
--         7 the share of it that is waited, 0.5 to 1  8 the most entries  9 the most payload, bytes
-- ANSWER  {retried, {side error, buried, more 0|1}}
-- The first call makes the group a plain one, and begins its part of the books anew.
local now, group, rest = clock(), ARGV[1], {}
for i = 3, 9 do rest[i - 2] = tonumber(ARGV[i]) end
local lease, attempts, first, longest, share, limit, most = unpack(rest)
local pending = redis.call('XPENDING', KEYS[1], group, 'IDLE', lease, '-', '+', limit)
local known = is_plain(KEYS[4], group)
redis.call('HLEN', KEYS[3])
redis.call('XLEN', KEYS[5])
local waiting = redis.call('ZCARD', KEYS[2])
local base = not known and base_of(KEYS[4], all_for(KEYS[1], KEYS[4], group),
  waiting > 0 and waiting_retries(KEYS[2], group) or 0)

local only, bytes, seen = alone(KEYS[1]), 0, 0
for _, row in ipairs(pending) do
  if bytes > most then break end
  local id, holder, flat, fields = row[1], row[2], entry(KEYS[1], row[1])
  local ours = flat and (not fields.group or fields.group == group)
  seen = seen + 1
  leave(group, only and ours, id, fields)
  if ours then
    local attempt = tonumber(fields.attempt) or 1
    bytes = bytes + #(fields.payload or '') + #(fields.id or '')
    if not readable(fields) then
      letter(group, 'malformed', 'it has no id and generation to be tried again with', now, holder, id, flat)
    elseif attempt >= attempts then
      local detail = 'its holder ' .. holder .. ' did not acknowledge it within ' .. digits(lease) .. ' ms'
      letter(group, 'attempts', detail, now, holder, id, flat)
    else
      await(group, flat, fields, now + math.floor(math.min(first * 2 ^ (attempt - 1), longest) * share), 1)
    end
  end
end
if seen > 0 or base then
  redis.call('HDEL', KEYS[3], '') -- a first write that Redis does not refuse at maxmemory
  write_letters(KEYS[5])
  if base then
    open_books(KEYS[4], group, base)
    redis.call('HSET', KEYS[4], 'plain:' .. group, '1')
  end
  write_retries(group, true, ARGV[2], now)
  count(KEYS[4], 'buried:' .. group, #letters)
end
return {#scores / 2, {side, #letters, seen < #pending and 1 or #pending == limit and 1 or 0}}
