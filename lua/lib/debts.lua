-- lib/debts: expiries that fired without proof. Should the event of one come after all, it pays, and does not fire.
-- A key may owe several: with one debt for each key, the second would hide the first, and both events would fire.
-- What a key owes. Its newest debt is `?<member>`, the one before `??<member>`, and so on: `forget` takes the oldest first.
local function debts_of(one, member)
  if one.debts then return one.debts end
  one.debts, one.owed = {}, 0
  local score = not one.free and call('ZSCORE', KEYS[3], '?' .. member)
  while score and one.owed < 16 do
    one.owed = one.owed + 1
    if position(score) > 0 then one.debts[#one.debts + 1] = position(score) end
    score = call('ZSCORE', KEYS[3], string.rep('?', one.owed + 1) .. member)
  end
  return one.debts
end
-- Whether this expiry has fired without proof. Of several debts it pays the oldest that is not before it.
local function pay(one, member)
  if one.free and not one.debts then return false end
  local debts = debts_of(one, member)
  for i = #debts, 1, -1 do
    if at <= debts[i] then
      table.remove(debts, i)
      one.paid = true
      return true
    end
  end
  return false
end

