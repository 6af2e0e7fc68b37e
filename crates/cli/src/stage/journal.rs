//! What a consumer of `demo` writes down about each timeout: one line when its handler starts, one when it is done.
//!
//! A line is in the pipe before the handler goes on, so it outlives SIGKILL.

use std::io::{self, BufRead, BufReader, PipeReader, Write};

use overdue_protocol::entry::Source;

/// One line. Ids are those of the demo: text on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A handler has started.
    Started { source: Source, at_us: u64, id: String },
    /// A handler is done; its timeout is not acknowledged yet.
    Ended { id: String },
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
            Line::Started { source, at_us, id } => format!("started {} {at_us} {id}\n", source.as_str()),
            Line::Ended { id } => format!("ended {id}\n"),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (word, rest) = text.split_once(' ')?;
        match word {
            "started" => {
                let mut words = rest.splitn(3, ' ');
                let (source, at_us) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                Some(Line::Started { source, at_us, id: words.next()?.to_owned() })
            }
            "ended" => Some(Line::Ended { id: rest.to_owned() }),
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
        let id = "order 17".to_owned();
        let started = Line::Started { source: Source::Index, at_us: 1_000_123, id: id.clone() };
        for line in [started, Line::Ended { id }] {
            assert_eq!(Line::parse(line.text().trim_end()), Some(line));
        }
        assert_eq!(Line::parse("started index 100"), None);
    }
}
