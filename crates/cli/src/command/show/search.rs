//! Looks for an id, place by place and page by page: no call takes more than a moment.

use std::collections::VecDeque;

use bytes::Bytes;
use overdue_protocol::{GroupName, Partition, RawEntry, tally};
use overdue_store::Store;

use super::lines;
use super::sight::{Body, Sight, Where, as_entry, watched_as_entry};
use crate::args::timers::Show;
use crate::args::value::Letter;
use crate::command::dead::letter::{buried_ms, lossy, number};
use crate::command::pages::Pages;
use crate::command::place::Place;
use crate::command::retries::Retries;
use crate::exit::Failure;
use crate::output::Output;
use crate::output::text;

/// How many bytes of names one call asks for.
const NAMES: usize = 64 * 1024;

/// The entries of a stream that are of the id, found so far.
struct Matches<'a> {
    pages: Pages<'a>,
    ahead: VecDeque<RawEntry>,
}

impl<'a> Matches<'a> {
    async fn open(store: &'a Store, stream: Bytes) -> Result<Self, Failure> {
        Ok(Self { pages: Pages::open(store, stream).await?, ahead: VecDeque::new() })
    }
}

/// A search under way.
pub(super) struct Search<'a> {
    args: &'a Show,
    place: &'a Place,
    partition: Partition,
    output: &'a mut Output,
    found: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(args: &'a Show, place: &'a Place, output: &'a mut Output) -> Self {
        Self { args, place, partition: place.partition_of(&args.id), output, found: 0 }
    }

    /// Whether there was something.
    pub(super) fn found(&self) -> bool {
        self.found > 0
    }

    /// Looks everywhere, once.
    pub(super) async fn look(&mut self) -> Result<(), Failure> {
        self.armed().await?;
        self.watched().await?;
        self.waiting().await?;
        self.stream().await?;
        self.dead().await?;
        self.done().await
    }

    /// Says that there may be more.
    pub(super) fn finish(self) -> Result<(), Failure> {
        if self.is_full() {
            return self.output.say(format!("\nstopped after {} places: --limit 0 shows all", self.found));
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.args.limit > 0 && self.found >= self.args.limit
    }

    async fn armed(&mut self) -> Result<(), Failure> {
        let Some((due_ms, record)) = self.place.store.record(&self.partition, &self.args.id).await? else {
            return Ok(());
        };
        let mut entry = as_entry(record);
        entry.fields.push(("due".into(), due_ms.to_string().into()));
        self.show(&[Where::Armed], &self.body(&entry)).await
    }

    async fn watched(&mut self) -> Result<(), Failure> {
        let key = self.args.id.as_bytes();
        let last_db = if self.place.store.is_cluster() { 0 } else { u8::MAX };
        let members: Vec<_> =
            (0..=last_db).map(|db| Bytes::from([format!("{db}:").as_bytes(), key].concat())).collect();
        let at_once = (NAMES / key.len()).clamp(1, members.len());
        for (n, members) in members.chunks(at_once).enumerate() {
            let dues = self.place.store.watched_dues(&self.partition, members).await?;
            for ((db, member), due_ms) in (n * at_once..).zip(members).zip(dues) {
                let Some(due_ms) = due_ms else { continue };
                let captured = self.place.store.captured(&self.partition, member).await?;
                let entry = watched_as_entry(db, due_ms, captured);
                self.show(&[Where::Watched], &self.body(&entry)).await?;
            }
        }
        Ok(())
    }

    async fn waiting(&mut self) -> Result<(), Failure> {
        let partition = self.partition.clone();
        let mut retries = Retries::of(&self.place.store, &partition);
        while let Some(page) = retries.next().await? {
            for retry in page.into_iter().filter(|retry| retry.of.id == self.args.id) {
                if self.is_full() {
                    return Ok(());
                }
                // It may have come back into the stream meanwhile, which is looked at next.
                let Some((due_ms, record)) = self.place.store.retry_record(&partition, &retry.member).await?
                else {
                    continue;
                };
                let (not_before, group) = (text::time(due_ms), retry.of.group.to_string());
                let waiting = Where::Waiting { group, not_before, not_before_ms: due_ms };
                self.show(&[waiting], &self.body(&as_entry(record))).await?;
            }
        }
        Ok(())
    }

    async fn stream(&mut self) -> Result<(), Failure> {
        let mut pages = Matches::open(&self.place.store, self.partition.stream()).await?;
        while let Some(entry) = self.next_of(&mut pages).await? {
            let places = self.readers(&entry).await?;
            self.show(&places, &self.body(&entry).delivered()).await?;
        }
        Ok(())
    }

    /// What each group has done with an entry so far.
    async fn readers(&self, entry: &RawEntry) -> Result<Vec<Where>, Failure> {
        let only = lossy(entry, "group");
        let books = self.place.store.tally(&self.partition).await?;
        let id = entry.id.to_string();
        let mut places = Vec::new();
        for info in self.place.store.groups(&self.partition).await? {
            let Ok(name) = GroupName::new(&info.name) else { continue };
            let group = info.name;
            if only.as_ref().is_some_and(|only| *only != group) {
                continue;
            }
            let is_plain = books.contains_key(&tally::plain(&name));
            places.push(match self.place.store.pending(&self.partition, &name, entry.id).await? {
                _ if entry.id > info.last_delivered => {
                    Where::Unread { group: Some(group), group_is_there: true, entry: id.clone() }
                }
                Some(held) => Where::Held {
                    group,
                    by: held.consumer,
                    idle_ms: held.idle_ms,
                    begun_alone: if is_plain { 0 } else { held.deliveries.saturating_sub(1) },
                    entry: id.clone(),
                },
                None => Where::Finished { group, entry: id.clone() },
            });
        }
        if places.is_empty() {
            places.push(Where::Unread { group: only, group_is_there: false, entry: id });
        }
        Ok(places)
    }

    async fn dead(&mut self) -> Result<(), Failure> {
        let mut pages = Matches::open(&self.place.store, self.partition.dead()).await?;
        while let Some(entry) = self.next_of(&mut pages).await? {
            let buried_ms = buried_ms(&entry);
            let dead = Where::Dead {
                letter: Letter { partition: self.partition.number(), entry: entry.id }.to_string(),
                group: lossy(&entry, "group"),
                reason: lossy(&entry, "reason"),
                detail: lossy(&entry, "detail"),
                buried: text::time(buried_ms),
                buried_ms,
                by: lossy(&entry, "by"),
            };
            self.show(&[dead], &self.body(&entry).delivered()).await?;
        }
        Ok(())
    }

    async fn done(&mut self) -> Result<(), Failure> {
        let mut pages = Matches::open(&self.place.store, self.partition.history()).await?;
        while let Some(entry) = self.next_of(&mut pages).await? {
            let done_ms = number(&entry, "done").unwrap_or(entry.id.ms);
            let (group, by) = (lossy(&entry, "group"), lossy(&entry, "by"));
            let done = Where::Done { group, done: text::time(done_ms), done_ms, by };
            self.show(&[done], &self.body(&entry).delivered()).await?;
        }
        Ok(())
    }

    /// The next entry of the id; `None` at the end, or when enough is shown.
    async fn next_of(&self, matches: &mut Matches<'_>) -> Result<Option<RawEntry>, Failure> {
        while !self.is_full() {
            if let Some(entry) = matches.ahead.pop_front() {
                return Ok(Some(entry));
            }
            let page = matches.pages.next().await?;
            if page.is_empty() {
                break;
            }
            let is_of_id = |entry: &RawEntry| entry.field("id") == Some(self.args.id.as_bytes());
            matches.ahead = page.into_iter().filter(is_of_id).collect();
        }
        Ok(None)
    }

    fn body(&self, entry: &RawEntry) -> Body {
        Body::new(&self.place.queue, self.partition.number(), &self.args.id, entry)
    }

    /// Shows the places of one timeout.
    async fn show(&mut self, places: &[Where], body: &Body) -> Result<(), Failure> {
        let is_first = !self.found();
        self.found += places.len() as u64;
        if self.output.is_json() {
            return places.iter().try_for_each(|place| self.output.object(&Sight { place, body }));
        }
        if is_first {
            let id = text::printable(self.args.id.as_bytes());
            self.output.say(format!("id          {id}"))?;
            let queue = format!("{}, partition {}", self.place.queue, self.partition.number());
            self.output.say(format!("queue       {queue}"))?;
        }
        let now_ms = self.place.store.time_ms().await?;
        let is_ahead = matches!(places, [Where::Armed | Where::Watched]);
        let entry = places.iter().find_map(|place| match place {
            Where::Unread { entry, .. } | Where::Held { entry, .. } | Where::Finished { entry, .. } => {
                Some(entry.as_str())
            }
            _ => None,
        });
        let heads = places.iter().flat_map(|place| lines::head(place, body, now_ms));
        let lines = [String::new()].into_iter().chain(heads).chain(lines::body(body, is_ahead, entry));
        lines.into_iter().try_for_each(|line| self.output.say(line))
    }
}
