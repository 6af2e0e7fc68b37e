//! Two relays, 600 keys, and everything that can be done to a key at 1,200 operations a second: every expiration that
//! the server told is one timeout. `scripts/soak watch MINUTES` runs these for as long as one likes.

use std::time::{Duration, Instant};

use overdue_tests::Program;

use crate::chaos::{Chaos, Harm};
use crate::churn::Churn;
use crate::stage::{await_quiet, load_background, redis, relay, timeouts};
use crate::truth::Truth;

/// What a run came to.
#[derive(Debug, Default)]
struct Verdict {
    expired: u64,
    lost: Vec<(String, u64)>,
    twice: Vec<(String, u64)>,
}

impl Verdict {
    fn lost(&self) -> u64 {
        self.lost.iter().map(|(_, n)| n).sum()
    }

    fn twice(&self) -> u64 {
        self.twice.iter().map(|(_, n)| n).sum()
    }
}

/// Runs until so many expirations, or for the minutes of a soak.
fn run(harm: Harm, expirations: u64, background: usize) -> Verdict {
    let redis = redis();
    load_background(&redis, background);
    let relays: [Program; 2] = std::array::from_fn(|_| relay(&redis, "on_unproven = \"drop\""));
    let truth = Truth::listen(&redis);
    let mut churn = Churn::new(&redis, 7 + harm as u64);
    let mut chaos = Chaos::new(harm, &redis, &relays);
    let minutes = std::env::var("OVERDUE_SOAK_MINUTES").ok().map(|text| text.parse::<f64>().unwrap());
    let begun = Instant::now();
    let goes_on = || match minutes {
        Some(minutes) => begun.elapsed().as_secs_f64() < minutes * 60.0,
        None => truth.total() < expirations,
    };
    while goes_on() {
        assert!(
            minutes.is_some() || begun.elapsed() < Duration::from_secs(240),
            "too slow: {}",
            truth.total()
        );
        churn.turn();
        chaos.turn();
    }
    chaos.end();
    churn.finish(&redis);
    await_quiet(&redis, Duration::from_secs(4));
    let mut verdict = Verdict::default();
    let (told, fired) = (truth.counts(), timeouts(&redis));
    for key in told.keys().chain(fired.keys().filter(|key| !told.contains_key(*key))) {
        let count = |of: &std::collections::BTreeMap<_, u64>| of.get(key).copied().unwrap_or(0);
        let (told, fired) = (count(&told), count(&fired));
        let name = key.escape_ascii().to_string();
        verdict.expired += told;
        if told > fired {
            verdict.lost.push((name, told - fired));
        } else if fired > told {
            verdict.twice.push((name, fired - told));
        }
    }
    for relay in &relays {
        relay.sigterm();
        assert!(relay.wait_exit(Duration::from_secs(10)).success(), "{}", relay.stderr());
    }
    println!(
        "{harm:?}: {} expirations, {} lost, {} twice, {:?}",
        verdict.expired,
        verdict.lost(),
        verdict.twice(),
        begun.elapsed()
    );
    verdict
}

#[test]
fn load_every_expiration_is_one_timeout() {
    let verdict = run(Harm::None, 20_000, 100_000);
    assert!(verdict.lost.is_empty() && verdict.twice.is_empty(), "{verdict:?}");
}

#[test]
fn load_every_expiration_is_one_timeout_while_a_relay_stands_still() {
    let verdict = run(Harm::Stop, 10_000, 100_000);
    assert!(verdict.lost.is_empty() && verdict.twice.is_empty(), "{verdict:?}");
}

#[test]
fn load_every_expiration_is_one_timeout_while_a_subscription_is_killed() {
    let verdict = run(Harm::KillOne, 10_000, 100_000);
    assert!(verdict.lost.is_empty() && verdict.twice.is_empty(), "{verdict:?}");
}

#[test]
fn load_hardly_an_expiration_is_lost_while_both_subscriptions_are_killed() {
    // Twice as many as above: what is lost in some 40 cuts of milliseconds is a few, more or fewer by chance.
    let verdict = run(Harm::KillBoth, 20_000, 100_000);
    assert!(verdict.twice.is_empty() && verdict.lost() * 1_000 <= verdict.expired, "{verdict:?}");
}
