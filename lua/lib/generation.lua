-- lib/generation: max(TIME in us, last + 1), so that none is used twice: not after firing,
-- a clock step, FLUSHALL, a restore or a failover.
local last_generation
local function next_generation(us, last)
  local floor = last_generation
  if not floor then
    floor = tonumber(last) or 0
    if not (floor < 8.9e15) then floor = 0 end -- the year 2252 or no number: not ours
  end
  last_generation = us > floor and us or floor + 1
  return last_generation
end
