-- renew v1: renews the leases of entries in hand. Fenced.
-- KEYS    1 stream
-- ARGV    1 group  2 consumer  3.. entry ids, at most 1,000
-- ANSWER  {renewed, {positions (from 1) that are not ours any more}}
local lost, ours = {}, {}
for i = 3, #ARGV do
  if owned(KEYS[1], ARGV[1], ARGV[2], ARGV[i]) then
    ours[#ours + 1] = ARGV[i]
  else
    lost[#lost + 1] = i - 2
  end
end
if #ours > 0 then
  ours[#ours + 1] = 'JUSTID' -- which leaves Redis' delivery counter alone
  redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, unpack(ours))
  ours[#ours] = nil
end
return {#ours, lost}
