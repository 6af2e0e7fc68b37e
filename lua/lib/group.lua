-- lib/group: what scripts ask of a stream and its consumer groups.
-- The groups of the stream: each {name, pending, read (the last entry delivered)}. None when there is no stream.
local function stream_groups(stream)
  local groups = {}
  if redis.call('EXISTS', stream) == 0 then return groups end
  for i, flat in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
    local info = {}
    for f = 1, #flat, 2 do info[flat[f]] = flat[f + 1] end
    groups[i] = {name = info.name, pending = info.pending, read = info['last-delivered-id']}
  end
  return groups
end
local function group_of(groups, name)
  for _, group in ipairs(groups) do
    if group.name == name then return group end
  end
end
-- The only group of the stream? Then what it has finished nobody else needs.
local function alone(stream) return #stream_groups(stream) == 1 end
-- A plain group acknowledges without our scripts: who deletes an entry counts it as done for it (PROTOCOL.md section 7).
local function is_plain(tally, name) return redis.call('HGET', tally, 'plain:' .. name) == '1' end
-- Is an entry with these fields for the group: addressed to it, or to nobody?
local function for_group(fields, group)
  for f = 1, #fields, 2 do
    if fields[f] == 'group' then return fields[f + 1] == group end
  end
  return true
end
-- The fence: is the entry pending for this consumer? NOGROUP stays an error: the caller joins again.
local function owned(stream, group, consumer, id)
  return #redis.call('XPENDING', stream, group, id, id, 1, consumer) > 0
end
-- The fields of an entry, as a list and by name; nil when it was deleted.
-- A list of more than 900 was written by no one of us and is cut: XADD takes what unpack can give.
local function entry(stream, id)
  local found = redis.call('XRANGE', stream, id, id)[1]
  if not found then return nil end
  local flat, by_name = found[2], {}
  if #flat > 900 then flat = {unpack(flat, 1, 900)} end
  for i = #flat - 1, 1, -2 do by_name[flat[i]] = flat[i + 1] end -- the first of two counts
  return flat, by_name
end

