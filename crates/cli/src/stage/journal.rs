//! What a consumer of `demo` writes down about each timeout: one line when its handler starts, one when it is done.
//!
//! A line is in the pipe before the handler goes on, so it outlives SIGKILL.

use std::io::{self, BufRead, BufReader, PipeReader, Write};

use overdue_protocol::Generation;
use overdue_protocol::entry::Source;

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A handler has started.
    Started { generation: Generation, due_ms: u64, source: Source, at_us: u64 },
    /// A handler is done; its timeout is not acknowledged yet.
    Ended { generation: Generation },
}

impl Line {
    /// Writes it to stdout, in one piece.
    pub(crate) fn write(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(self.text().as_bytes())?;
        out.flush()
    }

    fn text(&self) -> String {
        match self {
            Line::Started { generation, due_ms, source, at_us } => {
                format!("started {generation} {due_ms} {} {at_us}\n", source.as_str())
            }
            Line::Ended { generation } => format!("ended {generation}\n"),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        match words.next()? {
            "started" => Some(Line::Started {
                generation: words.next()?.parse().ok()?,
                due_ms: words.next()?.parse().ok()?,
                source: words.next()?.parse().ok()?,
                at_us: words.next()?.parse().ok()?,
            }),
            "ended" => Some(Line::Ended { generation: words.next()?.parse().ok()? }),
            _ => None,
        }
    }
}

/// The lines of a process until it ends; what is no such line is left out. Blocks.
pub(crate) fn read(pipe: PipeReader) -> impl Iterator<Item = Line> {
    BufReader::new(pipe).lines().map_while(Result::ok).filter_map(|line| Line::parse(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let started =
            Line::Started { generation: 17, due_ms: 1_000, source: Source::Index, at_us: 1_000_123 };
        for line in [started, Line::Ended { generation: 17 }] {
            assert_eq!(Line::parse(line.text().trim_end()), Some(line));
        }
        assert_eq!(Line::parse("started 17 100"), None);
    }
}
