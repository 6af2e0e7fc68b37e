-- lib/many: one command for many arguments, in steps of 1,000: unpack has a limit. Answers the sum.
local function many(flat, command, key, group)
  local sum, call = 0, redis.call
  for from = 1, #flat, 1000 do
    local upto = math.min(from + 999, #flat)
    if group then
      sum = sum + call(command, key, group, unpack(flat, from, upto))
    elseif key then
      sum = sum + call(command, key, unpack(flat, from, upto))
    else
      sum = sum + call(command, unpack(flat, from, upto))
    end
  end
  return sum
end
