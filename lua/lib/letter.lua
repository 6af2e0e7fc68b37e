-- lib/letter: dead letters: the fields of an entry, and before them why, when and by whom.
local letters = {}
local function letter(group, reason, detail, now, by, id, flat)
  local fields = {'group', group, 'reason', reason, 'detail', detail, 'buried', digits(now), 'by', by, 'entry', id}
  for f = 1, #flat, 2 do
    if flat[f] ~= 'group' then
      fields[#fields + 1] = flat[f]
      fields[#fields + 1] = flat[f + 1]
    end
  end
  letters[#letters + 1] = fields
end
local function write_letters(dead)
  for _, fields in ipairs(letters) do redis.call('XADD', dead, '*', unpack(fields)) end
end

