//! Steps of timers: armed, cancelled, fired.

use overdue_protocol::call::{Cancelled, Change, FiredWord, Mode, ScheduleItem, Sweep};
use overdue_tests::stage::{at, id, timer};

use crate::history::History;
use crate::operation::{Arm, Class, NAMES, Which};
use crate::reference::{Armed, Timeout};

impl History<'_> {
    pub(crate) fn schedule(&mut self, arms: &[Arm]) {
        let now = self.stage.wire.now_ms();
        let mut expected = vec![];
        let mut fired = vec![];
        let mut items = vec![];
        let near = now + 4;
        for arm in arms {
            self.armed += 1;
            // On a busy machine the call may run when what is near has passed: the same id then must not come twice.
            let twice = arms.iter().filter(|other| other.name == arm.name).count() > 1;
            let class = if twice && arm.class == Class::Near { Class::Far(9) } else { arm.class };
            let due = match class {
                Class::Past(n) => 1000 + u64::from(n),
                Class::Near => near,
                Class::Far(n) => now + 3_600_000 + u64::from(n),
            };
            let payload = format!("payload {}", self.armed);
            let item = ScheduleItem {
                when: at(due),
                mode: arm.mode,
                payload: payload.clone().into(),
                keyed: arm.keyed,
                ..timer(NAMES[arm.name])
            };
            items.push(item);
            let name = NAMES[arm.name].to_vec();
            let old = self.is.index.get(&name).cloned();
            let word = expect(arm.mode, old.as_ref(), due);
            expected.push((word, old.as_ref().map(|old| (old.timeout.generation, old.timeout.due)), due));
            if matches!(word, Word::FiredOld) {
                fired.push(self.is.fire(&name, "index"));
            }
            if matches!(word, Word::Armed | Word::Replaced | Word::FiredOld) {
                let timeout =
                    Timeout { name: name.clone(), generation: 0, due, payload, attempt: 1, src: "index" };
                let is_due = matches!(class, Class::Past(_));
                self.is.index.insert(name, Armed { timeout, keyed: arm.keyed, is_due });
            }
        }
        let answers = self.stage.arm(items);
        let mut last = 0;
        let mut fired_generations = vec![];
        for ((arm, answer), (word, old, due)) in arms.iter().zip(&answers).zip(expected) {
            let name = NAMES[arm.name].to_vec();
            // Within one call the generation of an earlier item is known only from the answer.
            let old_generation = |given: u64| old.is_some_and(|(known, _)| known == 0 || known == given);
            match word {
                Word::Armed => assert_eq!(answer.change, Change::Armed),
                Word::Replaced => assert_eq!(answer.change, Change::Replaced),
                Word::FiredOld => {
                    let Change::FiredOld(generation) = answer.change else {
                        panic!("{answer:?} is no FIRED_OLD")
                    };
                    assert!(old_generation(generation));
                    fired_generations.push(generation);
                }
                Word::Present => assert_eq!(answer.change, Change::Present),
                Word::Kept => assert_eq!(answer.change, Change::Kept),
                Word::Due => assert_eq!(answer.change, Change::Due),
                Word::Absent => {
                    assert_eq!((answer.change, answer.generation, answer.due_ms), (Change::Absent, 0, 0));
                }
            }
            if matches!(word, Word::Armed | Word::Replaced | Word::FiredOld) {
                assert!(answer.generation > last && answer.due_ms == due);
                last = answer.generation;
                if let Some(armed) = self.is.index.get_mut(&name) {
                    armed.timeout.generation = answer.generation;
                }
            } else if word != Word::Absent {
                assert!(old_generation(answer.generation) && Some(answer.due_ms) == old.map(|(_, due)| due));
            }
        }
        for (entry, generation) in fired.iter_mut().zip(fired_generations) {
            entry.timeout.generation = generation;
        }
        self.arrived(fired);
        if arms.iter().any(|arm| arm.class == Class::Near) {
            self.stage.pass(near);
            self.is
                .index
                .values_mut()
                .filter(|armed| armed.timeout.due == near)
                .for_each(|armed| armed.is_due = true);
        }
    }

    pub(crate) fn cancel(&mut self, items: &[(usize, Which)]) {
        let mut asked = vec![];
        let mut expected = vec![];
        for (name, which) in items {
            let armed = self.is.index.get(NAMES[*name]).map(|armed| armed.timeout.clone());
            let generation = armed.as_ref().map_or(7, |armed| armed.generation);
            let wanted = match which {
                Which::Any => None,
                Which::Armed => Some(generation),
                Which::Another => Some(generation + 1),
            };
            asked.push((id(NAMES[*name]), wanted));
            expected.push(match armed {
                None => Cancelled::Absent,
                Some(armed) if matches!(which, Which::Another) => Cancelled::Other(armed.generation),
                Some(armed) => {
                    self.is.index.remove(NAMES[*name]);
                    Cancelled::Disarmed { generation: armed.generation, due_ms: armed.due }
                }
            });
        }
        assert_eq!(self.stage.cancel_if(asked), expected);
    }

    pub(crate) fn fire(&mut self, names: &[usize]) {
        let mut fired = vec![];
        let mut expected = vec![];
        for name in names {
            expected.push(match self.is.index.get(NAMES[*name]) {
                None => FiredWord::Gone,
                Some(armed) if !armed.is_due => FiredWord::Early(armed.timeout.due),
                Some(armed) => {
                    let due = armed.timeout.due;
                    fired.push(self.is.fire(NAMES[*name], "notification"));
                    FiredWord::Fired(due)
                }
            });
        }
        let ids: Vec<_> = names.iter().map(|name| id(NAMES[*name])).collect();
        assert_eq!(self.stage.fire(&ids).words, expected);
        self.arrived(fired);
    }

    pub(crate) fn sweep(&mut self, limit: u32) {
        let due = self.is.due();
        let page = &due[..due.len().min(limit as usize)];
        let fired: Vec<_> = page.iter().map(|name| self.is.fire(name, "index")).collect();
        let swept = self.stage.wire.run(&Sweep { limit, ..self.stage.to_sweep() }).unwrap();
        let dues: Vec<_> = fired.iter().map(|entry| entry.timeout.due).collect();
        assert_eq!(
            (swept.fired as usize, swept.more, swept.dues_ms),
            (page.len(), due.len() > page.len(), dues)
        );
        assert_eq!(swept.next_due_ms, self.is.index.values().map(|armed| armed.timeout.due).min());
        self.arrived(fired);
    }
}

/// The table of PROTOCOL.md section 4, written once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Armed,
    Replaced,
    FiredOld,
    Present,
    Kept,
    Absent,
    Due,
}

fn expect(mode: Mode, old: Option<&Armed>, due: u64) -> Word {
    match (mode, old) {
        (Mode::IfPresent, None) => Word::Absent,
        (_, None) => Word::Armed,
        (Mode::Upsert | Mode::IfAbsent, Some(old)) if old.is_due => Word::FiredOld,
        (_, Some(old)) if old.is_due => Word::Due,
        (Mode::IfAbsent, Some(_)) => Word::Present,
        (Mode::OnlyLater, Some(old)) if due <= old.timeout.due => Word::Kept,
        (Mode::OnlyEarlier, Some(old)) if due >= old.timeout.due => Word::Kept,
        _ => Word::Replaced,
    }
}
