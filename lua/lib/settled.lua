-- lib/settled: the rules of watched keys (docs/PROTOCOL.md section 5). Each takes a key's table, the member and `horizon`,
-- what has been forgotten up to; it changes the table by the item at hand, and answers a word and the due it knows of.
local SOURCE, PROOF = {P = 'index', U = 'index'}, {P = 'nudge', U = 'none'}
local fired, unproven, dropped, new_names, told = 0, 0, 0, {}, 0 -- told: how many of `asked` have had their turn

local function look(one, _, horizon)
  local due, was = tonumber(value), one.score
  if at <= one.looked then return 'STALE', was end
  if at <= horizon then return 'OLD', was end
  if due == -2 and op == 'L' then return was and 'WAIT' or 'GONE', was end
  learn(one, due > 0 and due, extra ~= '' and extra)
  return due == -2 and not was and 'GONE' or 'OK', one.score
end
-- An expiry by its name: whoever tells of it, it fires once.
local function fire(one, member, horizon)
  local word, due, name, fresh = 'FIRED', 0, asked[told], at > one.looked
  if names[name] then return 'DUP' end
  if at <= horizon then
    -- A due behind the position is of a later life; names stay within a second of the time.
    if not (fresh and one.score and one.score * 1000 <= at + 1000000) then return 'OLD' end
    word = 'FIRED_OLD'
  elseif pay(one, member) then
    word = 'PAID'
  end
  if word ~= 'PAID' then
    due = enter(one, member, SOURCE[op] or 'notification', PROOF[op] or 'event', fresh)
    if not due then return 'MORE' end
    fired = fired + 1
  end
  names[name] = true
  add(new_names, text, name)
  if fresh then learn(one, false, false) end -- what a later look saw was a later life
  return word, due
end
-- Gone at its due, without proof, and no event before this position is on its way.
local function barrier(one, member, horizon)
  local due = one.score
  if at <= one.looked then return 'STALE', due end
  if at <= horizon then return 'OLD', due end
  if not due then return 'DONE' end
  if due > now then return 'GONE', due end -- what went before its due has not expired
  if op == 'D' then
    dropped = dropped + 1
  else
    if not enter(one, member, 'index', 'none', true) then return 'MORE' end
    fired, unproven = fired + 1, unproven + 1
    table.insert(debts_of(one, member), 1, at) -- its event, should it come after all, pays
    one.paid = true
  end
  learn(one, false, false)
  return op == 'D' and 'DROPPED' or 'UNPROVEN', due
end

