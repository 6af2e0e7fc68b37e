//! Reads a stream in pages, from its oldest entry to the one that was its last at the beginning.

use bytes::Bytes;
use overdue_protocol::RawEntry;
use overdue_protocol::entry::EntryId;
use overdue_store::{Result, Store};

use super::place::PAGE;

/// The first page: how large the payloads are is not known yet.
const FIRST: usize = 8;
/// About how much payload a page may hold, in bytes.
const BYTES: usize = 1024 * 1024;

/// A stream that is read in pages. What is added meanwhile is not read: it ends whatever others do.
pub(crate) struct Pages<'a> {
    store: &'a Store,
    stream: Bytes,
    after: Option<EntryId>,
    /// `None` = the stream was empty, or has been read to its end.
    last: Option<EntryId>,
    limit: usize,
}

impl<'a> Pages<'a> {
    /// Looks up where the stream ends.
    pub(crate) async fn open(store: &'a Store, stream: Bytes) -> Result<Self> {
        let last = store.last_entries(&stream, 1).await?.first().map(|entry| entry.id);
        Ok(Self { store, stream, after: None, last, limit: FIRST })
    }

    /// The next page; empty at the end.
    pub(crate) async fn next(&mut self) -> Result<Vec<RawEntry>> {
        let Some(last) = self.last else { return Ok(vec![]) };
        let mut page = self.store.entries(&self.stream, self.after, self.limit).await?;
        if page.len() < self.limit || page.last().is_some_and(|entry| entry.id >= last) {
            self.last = None;
        }
        page.retain(|entry| entry.id <= last);
        self.after = page.last().map(|entry| entry.id);
        self.limit = limit_after(self.limit, &page);
        Ok(page)
    }
}

/// How many entries to ask for next: more than before, but not more than fit if all are as large as the largest.
pub(crate) fn limit_after(limit: usize, page: &[RawEntry]) -> usize {
    let largest = page.iter().map(RawEntry::size).max().unwrap_or(0).max(1);
    (limit * 2).min(BYTES / largest).clamp(1, PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_grow_with_small_payloads_and_shrink_with_large_ones() {
        let page = |bytes: usize| {
            let payload = (Bytes::from("payload"), Bytes::from(vec![0; bytes]));
            vec![RawEntry { id: EntryId::ZERO, fields: vec![payload] }]
        };
        assert_eq!(limit_after(8, &page(10)), 16);
        assert_eq!(limit_after(400, &page(10)), PAGE);
        assert_eq!(limit_after(400, &page(100_000)), 10);
        assert_eq!(limit_after(400, &page(2_000_000)), 1);
        assert_eq!(limit_after(400, &[]), PAGE);
    }
}
