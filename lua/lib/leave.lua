-- lib/leave: entries that leave the pending list of a group without being done: a retry or a dead letter goes on.
-- What nobody else needs is deleted. Of a plain group an entry counts as done when it is deleted: for one that goes on
-- elsewhere and stays in the stream all the same, that is counted off beforehand.
local acks, deletes, staying = {}, {}, 0
-- `only`: the stream has no other group. `fields` is nil for an entry that somebody deleted.
local function leave(group, only, id, fields)
  acks[#acks + 1] = id
  if only or fields and fields.group == group then
    deletes[#deletes + 1] = id
  elseif fields and not fields.group then
    staying = staying + 1
  end
end
local function write_leaving(stream, tally, group, plain)
  many(acks, 'XACK', stream, group)
  many(deletes, 'XDEL', stream)
  if plain then count(tally, 'done:' .. group, -staying) end
end

