//! What is done to the relays meanwhile.

use std::time::{Duration, Instant};

use overdue_tests::{Program, Redis};

/// A kind of harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// None.
    None,
    /// One relay stands still for 1 to 3 s, again and again.
    Stop,
    /// The subscription of the first relay is killed every 2 s.
    KillOne,
    /// Those of both are.
    KillBoth,
}

/// Does harm when it is time.
pub(crate) struct Chaos<'a> {
    harm: Harm,
    redis: &'a Redis,
    relays: &'a [Program],
    next: Instant,
    stopped: Option<usize>,
    turn: u64,
}

impl<'a> Chaos<'a> {
    pub(crate) fn new(harm: Harm, redis: &'a Redis, relays: &'a [Program]) -> Self {
        Self { harm, redis, relays, next: Instant::now() + Duration::from_secs(2), stopped: None, turn: 0 }
    }

    /// Looks whether it is time.
    pub(crate) fn turn(&mut self) {
        if self.harm == Harm::None || Instant::now() < self.next {
            return;
        }
        self.turn += 1;
        self.next = Instant::now() + Duration::from_secs(2);
        match self.harm {
            Harm::None => {}
            Harm::Stop => match self.stopped.take() {
                Some(at) => {
                    self.relays[at].sigcont();
                    self.next = Instant::now() + Duration::from_millis(500);
                }
                None => {
                    let at = (self.turn / 2 % 2) as usize;
                    self.relays[at].sigstop();
                    self.stopped = Some(at);
                    self.next = Instant::now() + Duration::from_millis(1_000 + self.turn * 617 % 2_000);
                }
            },
            Harm::KillOne => self.kill(&self.relays[..1]),
            Harm::KillBoth => self.kill(self.relays),
        }
    }

    /// Makes all of them go on.
    pub(crate) fn end(mut self) {
        if let Some(at) = self.stopped.take() {
            self.relays[at].sigcont();
        }
    }

    fn kill(&self, relays: &[Program]) {
        let list = self.redis.call(&["CLIENT", "LIST", "TYPE", "pubsub"]).text();
        for relay in relays {
            let name = format!(":{}", relay.pid());
            let of_relay = list.lines().filter(|line| {
                let field = |key: &str| line.split(' ').find_map(|pair| pair.strip_prefix(key));
                field("name=")
                    .is_some_and(|value| value.starts_with("overdue-watch") && value.ends_with(&name))
            });
            for line in of_relay {
                let id = line.split(' ').find_map(|pair| pair.strip_prefix("id=")).unwrap();
                self.redis.call(&["CLIENT", "KILL", "ID", id]);
            }
        }
    }
}
