//! Steps with effects: a counter is exact, whatever becomes of the timeouts.

use overdue_protocol::Effect;
use overdue_protocol::call::Applied;
use overdue_protocol::entry::EntryId;

use crate::history::History;
use crate::operation::{CONSUMERS, Fit, GROUPS};
use crate::reference::Entry;

impl History<'_> {
    /// What effects meet: a string, and a stream that takes no entry any more.
    pub(crate) fn lay_out_effects(&mut self) {
        let (text, full) = (self.stage.beside("text"), self.stage.beside("full"));
        self.stage.wire.call(&[b"SET".as_slice(), &text, b"x"]).unwrap();
        let last = EntryId { ms: u64::MAX, seq: u64::MAX }.to_bytes();
        self.stage.wire.call(&[b"XADD".as_slice(), &full, &last, b"f", b"v"]).unwrap();
    }

    pub(crate) fn apply(&mut self, number: usize, consumer: usize, entries: &[EntryId], fit: Fit) {
        let entries = self.for_group(number, entries);
        let incr = Effect::IncrBy { key: self.stage.beside("counted"), by: 1 };
        let (text, full) = (self.stage.beside("text"), self.stage.beside("full"));
        let effects = match fit {
            Fit::Whole => vec![incr],
            Fit::Refused => vec![incr, Effect::HSet { key: text, field: "f".into(), value: "v".into() }],
            Fit::Failing => {
                vec![incr.clone(), Effect::XAdd { key: full, fields: vec![("f".into(), "v".into())] }, incr]
            }
        };
        let (mut expected, mut dead) = (vec![], vec![]);
        for at in &entries {
            let holder = self.is.groups[number].as_ref().unwrap().pending.get(at);
            let there = self.is.stream.get(at).cloned();
            expected.push(match (holder == Some(&consumer), &there, fit) {
                (false, _, _) => "Lost",
                (true, None, _) => "Gone",
                (true, Some(_), Fit::Whole) => "Ok",
                (true, Some(_), Fit::Refused) => "Refused",
                (true, Some(_), Fit::Failing) => "Incomplete",
            });
            match *expected.last().unwrap() {
                "Lost" | "Refused" => continue,
                "Incomplete" => {
                    dead.push(Entry { timeout: there.unwrap().timeout, group: Some(number) });
                    self.is.counted += 1;
                }
                "Ok" => self.is.counted += 1,
                _ => {}
            }
            self.is.finish(number, *at);
        }
        let by = self.stage.by(GROUPS[number], CONSUMERS[consumer]);
        let items: Vec<_> = entries.iter().map(|at| (*at, &effects[..])).collect();
        let call = self.stage.to_apply(by, &items);
        let applied = self.stage.wire.run(&call).unwrap();
        let word = |one: &Applied| match one {
            Applied::Ok => "Ok",
            Applied::Lost => "Lost",
            Applied::Gone => "Gone",
            Applied::Refused(_) => "Refused",
            Applied::Incomplete(_) => "Incomplete",
        };
        assert_eq!(applied.iter().map(word).collect::<Vec<_>>(), expected);
        self.died(dead);
    }

    pub(crate) fn check_effects(&mut self) {
        let counter = self.stage.beside("counted");
        let counted = self.stage.wire.call(&[b"GET".as_slice(), &counter]).unwrap();
        assert_eq!(counted.as_u64().unwrap_or(0), self.is.counted);
    }
}
