-- lib/many: one command for many arguments, in steps of 1,000: unpack has a limit. Answers the sum.
local function many(flat, ...)
  local command, sum = {...}, 0
  local head = #command
  for from = 1, #flat, 1000 do
    local upto = math.min(from + 999, #flat)
    for i = from, upto do command[head + i - from + 1] = flat[i] end
    sum = sum + redis.call(unpack(command, 1, head + upto - from + 1))
  end
  return sum
end

