-- lib/settled: the rules of watched keys (docs/PROTOCOL.md section 5). Each takes a key's table, an item and the member;
-- changes the table; answers a word and the due it knows of. `horizon` is what has been forgotten up to.
local SOURCE, PROOF = {P = 'index', U = 'index'}, {P = 'nudge', U = 'none'}
local fired, unproven, dropped, new_names = 0, 0, 0, {}

local function look(one, item, _, horizon)
  local due, was = tonumber(item.value), one.score
  if item.at <= one.looked then return 'STALE', was end
  if item.at <= horizon then return 'OLD', was end
  if due == -2 and item.op == 'L' then return was and 'WAIT' or 'GONE', was end
  learn(one, item.at, item.text, due > 0 and due or nil, item.extra ~= '' and item.extra)
  return due == -2 and not was and 'GONE' or 'OK', one.score
end
-- An expiry by its name: whoever tells of it, it fires once.
local function fire(one, item, member, horizon)
  local word, due, name, fresh = 'FIRED', 0, item.text .. '/' .. member, item.at > one.looked
  if names[name] then return 'DUP' end
  if item.at <= horizon then
    -- A due behind the position is of a later life; names stay within a second of the time.
    if not (fresh and one.score and one.score * 1000 <= item.at + 1000000) then return 'OLD' end
    word = 'FIRED_OLD'
  elseif pay(one, item, member) then
    word = 'PAID'
  end
  if word ~= 'PAID' then
    due = enter(one, member, item, SOURCE[item.op] or 'notification', PROOF[item.op] or 'event', fresh)
    if not due then return 'MORE' end
    fired = fired + 1
  end
  names[name] = true
  add(new_names, item.text, name)
  if fresh then learn(one, item.at, item.text, nil, false) end -- what a later look saw is a later life
  return word, due
end
-- Gone at its due, without proof, and no event before this position is on its way.
local function barrier(one, item, member, horizon)
  local due = one.score
  if item.at <= one.looked then return 'STALE', due end
  if item.at <= horizon then return 'OLD', due end
  if not due then return 'DONE' end
  if due > now then return 'GONE', due end -- what went before its due has not expired
  if item.op == 'D' then
    dropped = dropped + 1
  else
    if not enter(one, member, item, 'index', 'none', true) then return 'MORE' end
    fired, unproven = fired + 1, unproven + 1
    table.insert(debts_of(one, member), 1, item.at) -- its event, should it come after all, pays
    one.paid = true
  end
  learn(one, item.at, item.text, nil, false)
  return item.op == 'D' and 'DROPPED' or 'UNPROVEN', due
end

