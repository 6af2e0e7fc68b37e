//! Which dead letters, and where they are.

use overdue_protocol::{Partition, RawEntry};
use overdue_store::{Result, Store};

use super::letter;
use crate::args::dead::Filter;
use crate::command::pages::Pages;
use crate::command::place::Place;

/// A filter whose times are known.
struct Sieve<'a> {
    filter: &'a Filter,
    before_ms: Option<u64>,
    after_ms: Option<u64>,
}

impl<'a> Sieve<'a> {
    async fn new(filter: &'a Filter, store: &Store) -> Result<Self> {
        let needed = filter.before.is_some() || filter.after.is_some();
        let now_ms = if needed { store.time_ms().await? } else { 0 };
        let [before_ms, after_ms] =
            [filter.before, filter.after].map(|moment| moment.map(|moment| moment.unix_ms(now_ms)));
        Ok(Self { filter, before_ms, after_ms })
    }

    fn lets(&self, letter: &RawEntry) -> bool {
        let Filter { group, reason, id, .. } = self.filter;
        let is = |field, wanted: Option<&str>| {
            wanted.is_none_or(|wanted| letter.field(field).is_some_and(|value| value == wanted))
        };
        let buried_ms = letter::buried_ms(letter);
        is("group", group.as_ref().map(|group| group.as_str()))
            && is("reason", reason.as_deref())
            && id.as_ref().is_none_or(|glob| letter.field("id").is_some_and(|id| glob.is_match(id)))
            && self.before_ms.is_none_or(|before_ms| buried_ms < before_ms)
            && self.after_ms.is_none_or(|after_ms| buried_ms >= after_ms)
    }
}

/// The dead letters of a queue that a filter lets through: partition by partition, oldest first. What is buried
/// after it was opened is not among them.
pub(super) struct Letters<'a> {
    sieve: Sieve<'a>,
    /// The last is read first.
    ahead: Vec<(Partition, Pages<'a>)>,
    /// How many the filter kept back so far.
    pub(super) kept_back: usize,
}

impl<'a> Letters<'a> {
    pub(super) async fn open(place: &'a Place, filter: &'a Filter) -> Result<Self> {
        let sieve = Sieve::new(filter, &place.store).await?;
        let mut ahead = Vec::new();
        for partition in place.partitions().into_iter().rev() {
            let pages = Pages::open(&place.store, partition.dead()).await?;
            ahead.push((partition, pages));
        }
        Ok(Self { sieve, ahead, kept_back: 0 })
    }

    /// The next letters of one partition; it may be that none of a page are let through. `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<(Partition, Vec<RawEntry>)>> {
        while let Some((partition, pages)) = self.ahead.last_mut() {
            let mut page = pages.next().await?;
            if !page.is_empty() {
                let all = page.len();
                page.retain(|letter| self.sieve.lets(letter));
                self.kept_back += all - page.len();
                return Ok(Some((partition.clone(), page)));
            }
            self.ahead.pop();
        }
        Ok(None)
    }
}
