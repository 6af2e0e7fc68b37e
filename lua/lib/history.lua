-- lib/history: the timeouts that were finished last, for people who ask what became of one.
-- `history` is its key, `most` how many it keeps. A courtesy like the books: its failure undoes nothing.
local function remember(history, most, group, consumer, now, fields)
  book('XADD', history, 'MAXLEN', most, '*', 'id', fields.id or '', 'gen', fields.gen or '', 'due', fields.due or '',
    'kind', fields.kind or 'timer', 'group', group, 'attempt', fields.attempt or '1', 'done', digits(now), 'by', consumer)
end

