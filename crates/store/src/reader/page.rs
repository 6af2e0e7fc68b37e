//! An answer of XREAD or XREADGROUP for one stream, read as it comes: `[[key, [[id, [name, value, ...]], ...]]]`.
//!
//! An entry is a score of strings, and a page some thousands. The library would build a tree of them, another of its own
//! types, and both again for each piece in which the page arrives.

use std::ops::Range;

use bytes::Bytes;
use overdue_protocol::RawEntry;

use crate::ErrorKind;
use crate::fault::Fault;

/// Reads one answer.
#[derive(Default)]
pub(super) struct Page {
    /// How many entries are still to come; `None` before that was said.
    left: Option<usize>,
    entries: Vec<RawEntry>,
    /// Where the strings of an entry lie.
    parts: Vec<Range<usize>>,
}

/// Why reading stops.
enum Stop {
    /// The rest has not come yet.
    More,
    Fault(Fault),
}

impl Page {
    /// Takes what is here in full; answers how many bytes that was, and all entries when there are no more to come.
    ///
    /// # Errors
    /// The server's own, and whatever is no such answer.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(usize, Option<Vec<RawEntry>>), Fault> {
        let mut cursor = Cursor { bytes, at: 0 };
        let mut taken = 0;
        loop {
            let step = match self.left {
                None => cursor.head().map(|count| self.left = Some(count)),
                Some(0) => return Ok((taken, Some(std::mem::take(&mut self.entries)))),
                Some(left) => cursor.entry(&mut self.parts).map(|entry| {
                    self.entries.push(entry);
                    self.left = Some(left - 1);
                }),
            };
            match step {
                Ok(()) => taken = cursor.at,
                Err(Stop::More) => return Ok((taken, None)),
                Err(Stop::Fault(fault)) => return Err(fault),
            }
        }
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// All before the entries: how many there are.
    fn head(&mut self) -> Result<usize, Stop> {
        if self.bytes.first() == Some(&b'-') {
            let text = self.line()?.get(1..).unwrap_or_default();
            return Err(Stop::Fault(Fault::of_reply(&String::from_utf8_lossy(text))));
        }
        let Some(streams) = self.count(b'*')? else { return Ok(0) };
        if streams == 0 {
            return Ok(0);
        }
        let shape = (streams, self.count(b'*')?);
        self.string()?;
        match (shape, self.count(b'*')?) {
            ((1, Some(2)), count) => Ok(count.unwrap_or(0)),
            _ => Err(unknown()),
        }
    }

    fn entry(&mut self, parts: &mut Vec<Range<usize>>) -> Result<RawEntry, Stop> {
        let begin = self.at;
        let entry = self.entry_at(begin, parts);
        if entry.is_err() {
            self.at = begin;
        }
        entry
    }

    fn entry_at(&mut self, begin: usize, parts: &mut Vec<Range<usize>>) -> Result<RawEntry, Stop> {
        if self.count(b'*')? != Some(2) {
            return Err(unknown());
        }
        let id = self.string()?;
        let id =
            std::str::from_utf8(&self.bytes[id]).ok().and_then(|id| id.parse().ok()).ok_or_else(unknown)?;
        // An entry that was deleted while it was pending has no fields.
        let count = self.count(b'*')?.unwrap_or(0);
        parts.clear();
        for _ in 0..count {
            let part = self.string()?;
            parts.push(part.start - begin..part.end - begin);
        }
        // Copied, each for itself: one that is handled for long does not keep the others, and tasks on several threads do
        // not count their shares of one page.
        let all = Bytes::copy_from_slice(&self.bytes[begin..self.at]);
        let pairs = parts.chunks_exact(2);
        let fields = pairs.map(|pair| (all.slice(pair[0].clone()), all.slice(pair[1].clone()))).collect();
        Ok(RawEntry { id, fields })
    }

    /// The number behind a sign; `None` for -1, which is nothing at all.
    fn count(&mut self, sign: u8) -> Result<Option<usize>, Stop> {
        let line = self.line()?;
        let digits = match line.split_first() {
            Some((first, digits)) if *first == sign => digits,
            Some((b'$', b"-1")) => return Ok(None),
            _ => return Err(unknown()),
        };
        if digits == b"-1" {
            return Ok(None);
        }
        let short = !digits.is_empty() && digits.len() <= 10 && digits.iter().all(u8::is_ascii_digit);
        let number = digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'));
        if short { Ok(Some(number)) } else { Err(unknown()) }
    }

    fn string(&mut self) -> Result<Range<usize>, Stop> {
        let length = self.count(b'$')?.ok_or_else(unknown)?;
        let string = self.at..self.at + length;
        match self.bytes.get(string.end..string.end + 2) {
            None => Err(Stop::More),
            Some(b"\r\n") => {
                self.at = string.end + 2;
                Ok(string)
            }
            Some(_) => Err(unknown()),
        }
    }

    /// Up to the end of the line, which is not part of it.
    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|&byte| byte == b'\r').ok_or(Stop::More)?;
        if rest.len() < end + 2 {
            return Err(Stop::More);
        }
        self.at += end + 2;
        Ok(&rest[..end])
    }
}

fn unknown() -> Stop {
    Stop::Fault(Fault::new(ErrorKind::Malformed, "the answer of a read has an unknown shape"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[u8] = b"*1\r\n*2\r\n$1\r\ns\r\n*2\r\n*2\r\n$3\r\n5-0\r\n*4\r\n$2\r\nid\r\n$3\r\n\r\n\xff\r\n$1\r\np\r\n$0\r\n\r\n\
        *2\r\n$4\r\n6-10\r\n*-1\r\n";

    /// Reads an answer that comes in pieces of so many bytes, as a connection would.
    fn read(answer: &[u8], piece: usize) -> Result<Option<Vec<RawEntry>>, Fault> {
        let (mut page, mut here) = (Page::default(), vec![]);
        for piece in answer.chunks(piece) {
            here.extend_from_slice(piece);
            let (taken, done) = page.take(&here)?;
            here.drain(..taken);
            if done.is_some() {
                assert!(here.is_empty(), "something is left of {answer:?}");
                return Ok(done);
            }
        }
        Ok(None)
    }

    #[test]
    fn a_page_that_is_cut_at_every_byte_comes_out_whole() {
        for piece in 1..=TWO.len() {
            let entries = read(TWO, piece).unwrap().unwrap();
            assert_eq!(entries.len(), 2, "in pieces of {piece}");
            assert_eq!(entries[0].id.to_string(), "5-0");
            let fields: Vec<(&[u8], &[u8])> =
                entries[0].fields.iter().map(|(name, value)| (&name[..], &value[..])).collect();
            assert_eq!(fields, [(&b"id"[..], &b"\r\n\xff"[..]), (&b"p"[..], &b""[..])]);
            assert_eq!((entries[1].id.to_string(), entries[1].fields.len()), ("6-10".to_owned(), 0));
        }
        assert_eq!(read(&TWO[..TWO.len() - 1], 7).unwrap(), None);
    }

    #[test]
    fn nothing_is_no_entries() {
        for nothing in [
            "*-1\r\n",
            "$-1\r\n",
            "*0\r\n",
            "*1\r\n*2\r\n$1\r\ns\r\n*0\r\n",
            "*1\r\n*2\r\n$1\r\ns\r\n*-1\r\n",
        ] {
            assert_eq!(read(nothing.as_bytes(), 3).unwrap(), Some(vec![]), "{nothing:?}");
        }
    }

    #[test]
    fn an_error_of_the_server_keeps_its_meaning() {
        let fault = read(b"-NOGROUP No such key 's' or consumer group 'g'\r\n", 5).unwrap_err();
        assert_eq!(fault.kind, ErrorKind::NoGroup);
    }

    #[test]
    fn what_is_no_page_is_refused_and_not_waited_for() {
        for odd in [
            "+OK\r\n",
            ":1\r\n",
            "*2\r\n*2\r\n$1\r\ns\r\n*0\r\n",
            "*1\r\n*3\r\n$1\r\ns\r\n*0\r\n",
            "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$1\r\nx\r\n*0\r\n",
            "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*3\r\n",
            "*1\r\n*2\r\n$1\r\nsx\r\n",
            "*99999999999\r\n",
            "*x\r\n",
            "*\r\n",
        ] {
            assert_eq!(read(odd.as_bytes(), 64).unwrap_err().kind, ErrorKind::Malformed, "{odd:?}");
        }
    }
}
