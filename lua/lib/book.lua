-- lib/book: writes that must not undo what was done: the books, wake messages.
-- They come last; a failure is the answer's side error, never an error of the script.
local side = ''
-- What a failed redis.call says: 6.2 throws text, later ones a table.
local function said(failure) return type(failure) == 'table' and failure.err or tostring(failure) end
-- Answers whether it was written.
local function book(...)
  local ok, failure = pcall(redis.call, ...)
  if not ok and side == '' then side = said(failure) end
  return ok
end
local function count(tally, field, by)
  if by ~= 0 then book('HINCRBY', tally, field, by) end
end
-- Tells the reconciler of a new earliest due; it looks once a second anyway, so only what is due within 2 s.
local function wake(channel, index, due, now)
  if due > now + 2000 then return end
  local first = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
  if tonumber(first[2]) == due then book('PUBLISH', channel, string.format('%.0f', due)) end
end

