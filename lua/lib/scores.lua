-- lib/scores: the scores of many members, as Redis gives them, false for those that are not there; in their order.
local function scores_of(index, members)
  if #members == 0 then redis.call('ZCARD', index) end -- so that a wrong type is met all the same
  if #members <= 1000 then return #members > 0 and redis.call('ZMSCORE', index, unpack(members)) or {} end
  local all = {}
  for from = 1, #members, 1000 do
    local upto = math.min(from + 999, #members)
    for i, score in ipairs(redis.call('ZMSCORE', index, unpack(members, from, upto))) do all[from + i - 1] = score end
  end
  return all
end

