//! What commands say on stdout: plain tables for people, or with `--json` one JSON object a line.

pub(crate) mod text;
pub(crate) mod watched;

use std::io::{BufWriter, Write, stdout};
use std::marker::PhantomData;

use overdue_telemetry::logs;
use serde::Serialize;

use crate::exit::Failure;

/// Something that can be listed.
pub(crate) trait Row: Serialize {
    /// The heads of the columns, in capitals.
    const COLUMNS: &'static [&'static str];

    /// One text for each column. Bytes that users chose go through [`text::printable`] first.
    fn cells(&self) -> Vec<String>;
}

/// What a word may be painted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Red = 31,
    Green = 32,
    Yellow = 33,
}

/// The program's stdout. A closed pipe comes back as a [`Failure`] with exit code 0.
pub(crate) struct Output {
    json: bool,
    colours: bool,
    out: Box<dyn Write + Send>,
}

impl Output {
    /// Writes to stdout.
    pub(crate) fn new(json: bool) -> Self {
        Self { json, colours: logs::may_colour(&stdout()), out: Box::new(BufWriter::new(stdout())) }
    }

    /// Whether stdout is a terminal where colours may be written.
    pub(crate) fn has_colours(&self) -> bool {
        self.colours
    }

    /// A word in a colour, where colours may be written.
    pub(crate) fn paint(&self, colour: Colour, word: &str) -> String {
        if self.colours { format!("\x1b[{}m{word}\x1b[0m", colour as u8) } else { word.to_owned() }
    }

    /// Whether `--json` was given.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// A line for people. With `--json` nothing is written.
    pub(crate) fn say(&mut self, line: impl std::fmt::Display) -> Result<(), Failure> {
        if !self.json {
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }

    /// An object for machines. Without `--json` nothing is written.
    pub(crate) fn object(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        if self.json {
            self.write_object(value)?;
        }
        Ok(())
    }

    /// Text as it is, in both modes: for `config sample`.
    pub(crate) fn raw(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes())?;
        Ok(())
    }

    /// A list that may come in pages.
    pub(crate) fn table<R: Row>(&mut self) -> Table<'_, R> {
        Table { output: self, widths: vec![], row: PhantomData }
    }

    /// Hands what was written to the reader now: after each line of a list that goes on, and at the end.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    fn write_object(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let line = serde_json::to_string(value).map_err(std::io::Error::other)?;
        writeln!(self.out, "{line}")?;
        Ok(())
    }
}

/// A table under way. The first page sets the widths of the columns, so that pages of any number can follow
/// without being held in memory.
pub(crate) struct Table<'a, R> {
    output: &'a mut Output,
    widths: Vec<usize>,
    row: PhantomData<R>,
}

impl<R: Row> Table<'_, R> {
    /// Writes a page; the heads of the columns come before the first one that is not empty.
    pub(crate) fn page(&mut self, rows: &[R]) -> Result<(), Failure> {
        if self.output.json {
            return rows.iter().try_for_each(|row| self.output.write_object(row));
        }
        if rows.is_empty() {
            return Ok(());
        }
        let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
        if self.widths.is_empty() {
            let heads: Vec<String> = R::COLUMNS.iter().map(|&head| head.to_owned()).collect();
            let width = |column: usize| {
                let longest = cells.iter().map(|row| row[column].chars().count()).max();
                longest.unwrap_or(0).max(heads[column].len())
            };
            self.widths = (0..heads.len()).map(width).collect();
            self.write(&heads)?;
        }
        cells.iter().try_for_each(|row| self.write(row))
    }

    /// Hands the lines to the reader now, when a list goes on while its reader waits.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.output.flush()
    }

    fn write(&mut self, cells: &[String]) -> Result<(), Failure> {
        let padded = cells.iter().zip(&self.widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = padded.collect::<Vec<_>>().join("  ");
        writeln!(self.output.out, "{}", line.trim_end())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[derive(Serialize)]
    struct Timer(&'static str, u32);

    impl Row for Timer {
        const COLUMNS: &'static [&'static str] = &["ID", "ATTEMPT"];

        fn cells(&self) -> Vec<String> {
            vec![self.0.to_owned(), self.1.to_string()]
        }
    }

    fn written(json: bool, write: impl FnOnce(&mut Output)) -> String {
        let sink = Sink::default();
        write(&mut Output { json, colours: false, out: Box::new(sink.clone()) });
        let bytes = sink.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn people_get_a_table_with_one_head() {
        let text = written(false, |output| {
            let mut table = output.table();
            table.page(&[]).unwrap();
            table.page(&[Timer("order-1", 1), Timer("é", 20)]).unwrap();
            table.page(&[Timer("longer-than-before", 3)]).unwrap();
        });
        assert_eq!(text, "ID       ATTEMPT\norder-1  1\né        20\nlonger-than-before  3\n");
    }

    #[test]
    fn machines_get_one_object_a_line_and_no_words() {
        let text = written(true, |output| {
            output.say("created queue orders").unwrap();
            output.table().page(&[Timer("a", 1), Timer("b", 2)]).unwrap();
            output.object(&serde_json::json!({"ok": true})).unwrap();
        });
        assert_eq!(text, "[\"a\",1]\n[\"b\",2]\n{\"ok\":true}\n");
    }

    #[test]
    fn objects_are_not_for_people() {
        assert_eq!(written(false, |output| output.object(&1).unwrap()), "");
    }
}
