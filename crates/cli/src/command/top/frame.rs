//! One frame: a head and three lists, for a terminal or as plain text.

use ratatui::buffer::Buffer;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Borders, Cell, Row, Table, Widget};

use super::cells::Cells;
use super::view::{Need, View};
use crate::command::doctor::relays::RELAY_SEEN_MS;
use crate::output::text;

/// Between two columns.
const GAP: u16 = 2;
/// Lines of a list besides its rows: title and heads.
const AROUND: u16 = 2;
/// No line of plain text is longer.
const WIDEST: u16 = 400;

/// What is shown.
pub(super) struct Frame {
    /// Which Redis and namespace.
    place: String,
    colours: bool,
    view: View,
    /// Why the view is an old one.
    failure: Option<String>,
}

impl Frame {
    pub(super) fn new(place: String, colours: bool) -> Self {
        Self { place, colours, view: View::default(), failure: None }
    }

    /// From now on shows this.
    pub(super) fn show(&mut self, view: View) {
        (self.view, self.failure) = (view, None);
    }

    /// From now on says that what it shows is old.
    pub(super) fn fail(&mut self, why: String) {
        self.failure = Some(why);
    }

    /// The frame as plain text, with every row, as wide as it needs.
    pub(super) fn lines(&self) -> Vec<String> {
        let (queues, groups, processes) = (&self.view.queues, &self.view.groups, &self.view.processes);
        let lists = [width(queues), width(groups), width(processes)];
        let heads = self.heads().iter().map(Line::width).max().unwrap_or(0);
        let width = lists.into_iter().max().unwrap_or(0).max(heads.try_into().unwrap_or(WIDEST)).min(WIDEST);
        let rows = queues.len() + groups.len() + processes.len() + self.heads().len();
        let height = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(3 * AROUND);
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        self.render(area, &mut buffer);
        lines_of(&buffer)
    }

    fn heads(&self) -> Vec<Line<'_>> {
        let memory = match self.view.maxmemory {
            0 => format!("{} bytes used", text::count(self.view.used_memory)),
            max => format!("{} of {} bytes used", text::count(self.view.used_memory), text::count(max)),
        };
        let time = self.view.time.split('.').next().unwrap_or_default();
        let mut heads = vec![Line::from(format!("overdue top  {time}Z  {}  {memory}", self.place))];
        if let Some(why) = &self.failure {
            let what = format!("this is old: {}", text::printable(why.as_bytes()));
            heads.push(Line::styled(what, self.style(Need::Bad)));
        } else if !self.view.has_relay() {
            let what = format!("no relay was seen in the last {} s: nothing fires", RELAY_SEEN_MS / 1000);
            heads.push(Line::styled(what, self.style(Need::Bad)));
        }
        heads
    }

    fn style(&self, need: Need) -> Style {
        match need {
            Need::Ok => Style::new(),
            // Without colours what is bad is told by its place on top.
            _ if !self.colours => Style::new().add_modifier(Modifier::BOLD),
            Need::Bad => Style::new().fg(Color::Red),
            Need::Warn => Style::new().fg(Color::Yellow),
        }
    }

    fn list<R: Cells>(&self, title: &str, rows: &[R], area: Rect, buffer: &mut Buffer) {
        let shown = rows.len().min(usize::from(area.height.saturating_sub(AROUND)));
        let title = match rows.len() {
            all if all > shown => format!(" {title}: {shown} of {all} "),
            all => format!(" {title}: {all} "),
        };
        let cell = |head: &&str, text: String| {
            let alignment = if head.starts_with(' ') { Alignment::Right } else { Alignment::Left };
            Cell::from(Text::from(text).alignment(alignment))
        };
        let line = |row: &R| {
            let cells = R::HEADS.iter().zip(row.cells()).map(|(head, text)| cell(head, text));
            Row::new(cells.collect::<Vec<_>>()).style(self.style(row.need()))
        };
        let heads =
            Row::new(R::HEADS.iter().map(|head| cell(head, head.trim().to_owned())).collect::<Vec<_>>())
                .style(Style::new().add_modifier(Modifier::BOLD));
        let table = Table::new(rows.iter().take(shown).map(line), fitting(rows, area.width))
            .header(heads)
            .column_spacing(GAP)
            .block(Block::new().borders(Borders::TOP).title(title));
        Widget::render(table, area, buffer);
    }
}

impl Widget for &Frame {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let heads = self.heads();
        let view = &self.view;
        let needs =
            |rows: usize| Constraint::Max(u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(AROUND));
        let head = Constraint::Length(u16::try_from(heads.len()).unwrap_or(1));
        let lists = [needs(view.queues.len()), needs(view.groups.len()), needs(view.processes.len())];
        let [top, queues, groups, processes, _] =
            Layout::vertical([head, lists[0], lists[1], lists[2], Constraint::Fill(0)]).areas(area);
        Text::from(heads).render(top, buffer);
        self.list("Queues", &view.queues, queues, buffer);
        self.list("Groups", &view.groups, groups, buffer);
        self.list("Relays and consumers", &view.processes, processes, buffer);
    }
}

/// What stands in a buffer, without blanks at the ends of lines.
fn lines_of(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let line = |y| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..area.height).map(|y| line(y).trim_end().to_owned()).collect()
}

/// How wide each column must be.
fn widths<R: Cells>(rows: &[R]) -> impl Iterator<Item = u16> {
    let mut widths: Vec<usize> = R::HEADS.iter().map(|head| head.trim().len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row.cells()) {
            *width = (*width).max(Line::from(cell).width());
        }
    }
    widths.into_iter().map(|width| u16::try_from(width).unwrap_or(WIDEST))
}

/// The widths of the columns that fit. The first that does not is cut when it is text, and left out with those behind
/// it when it is a number.
fn fitting<R: Cells>(rows: &[R], room: u16) -> Vec<Constraint> {
    let mut left = room;
    let mut fitting = vec![];
    for (head, width) in R::HEADS.iter().zip(widths(rows)) {
        let is_number = head.starts_with(' ');
        if width > left && is_number {
            break;
        }
        fitting.push(Constraint::Length(width.min(left)));
        left = left.saturating_sub(width.saturating_add(GAP));
    }
    fitting
}

fn width<R: Cells>(rows: &[R]) -> u16 {
    widths(rows).map(|width| width.saturating_add(GAP)).fold(0, u16::saturating_add)
}

#[cfg(test)]
mod tests;
