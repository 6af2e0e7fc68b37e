//! Watched keys, every history of them: a model of docs/PROTOCOL.md section 5 and a search that leaves nothing out.
//!
//! # What is modelled
//!
//! One key on one node; users who write it, move its end, take its TTL away, delete it, at any moment; Redis, which
//! deletes it at any moment after its due, by itself or because somebody's command meets it. The node says what happens
//! in one order, markers among it. Two relays listen, each as late as it likes. A relay takes what it was told in
//! batches: first all expiries, by the names that it counts out, in one `settle`; then, if anything else was said, one
//! `touch` and another `settle`. Beside that its nudger touches the key when the due in the index is reached, and waits
//! for `met` where the key is gone. The index applies what comes, by the rules of `settle`. (Files: `node`, `relay`,
//! `lane`, `index`; `step` says what is possible when, `act` what it does; `truth` knows what really happened, and no rule sees it.)
//!
//! Between any two of these steps anything else may come: another relay's touch lies between this one's touch and its
//! settle, a write between a touch and its event, and so on. Then there are faults, each as often as a test allows:
//!
//! - a subscription is cut: what had not arrived, and what is said until it is opened again, is lost to that relay.
//!   (Loss inside the client is the same, with nothing said in between.) Then `base` is forgotten, the relay owes a
//!   touch without keys and a SCAN;
//! - a relay is killed, with all that it had in hand;
//! - an answer is lost: of a `touch` (it is done again; the proof is gone), of a `settle` (the same is sent again);
//! - a nudge waits no longer than `proof_wait`;
//! - names and looks are forgotten;
//! - the clock is set back or forward.
//!
//! # What must hold
//!
//! Always: an expiry has no second entry; there are never more entries than expiries, but for those without proof for
//! keys that somebody removed; no entry for a key that lives; and while nobody misses anything or is in a hurry,
//! nothing is ever taken for unproven.
//!
//! When nothing is under way: every expiry that some relay heard of in time has its entry (or was taken for the one
//! that had fired without proof); one that none heard of (both in a gap, and somebody else's command expired the key)
//! has one without proof if the rule is `fire`, the index knew the key, and it was not written again; the index holds
//! the due of the live key; and no nudge waits.
//!
//! # Bounds, and what is left out
//!
//! A search is complete within the bounds that its test states: so many writes, deletes, faults. Dues are one or two
//! ticks away; positions count by their order alone, except where clocks are set. One lane (lanes are by key), one
//! feed, one partition. No evictions (with the rule `fire` one is an expiry, else a deletion that counts in n), no
//! payloads, no flush detection, no replicas.
//!
//! # What it found
//!
//! Each test in `caught` is a rule that reads well and fails; the search prints the shortest history that shows it. Four
//! were in the specification until the model was there, and are marked so. The step that nobody thinks of is mostly the
//! same: a key is written again while its last end is still being told.
//!
//! The search is our own, 60 lines (`search`). Stateright, the crate for this, brings 46 crates, an HTTP server among
//! them, takes 20 s to compile, and treats symmetric states as one only in its depth-first search, which doesn't find
//! the shortest history. To see the numbers of states and the histories:
//! `cargo nextest run -p overdue-tests --test model --no-capture -E 'test(watch)'`. (What can't matter any more is not shown
//! in a history, and positions are numbered anew at each step: see `simple`. With `is_plain` it is shown as it is.)
#![allow(clippy::print_stdout, reason = "the number of states, and the histories, are the result")]

mod act;
mod caught;
mod clock;
mod holds;
mod index;
mod lane;
mod node;
mod relay;
mod rules;
mod search;
mod setting;
mod simple;
mod small;
mod step;
mod truth;
mod world;

use self::rules::{OnUnproven, Rules};
use self::search::search;
use self::setting::Setting;
use self::world::World;

/// Both answers to what is unproven.
const BOTH: [OnUnproven; 2] = [OnUnproven::Fire, OnUnproven::Drop];

/// No history breaks a promise.
fn holds(setting: Setting) {
    let found = search(&World::new(setting));
    let Rules { on_unproven, .. } = setting.rules;
    println!("holds, {on_unproven:?}: {} states, {} steps", found.states, found.steps);
    if let Some((fault, history)) = found.fault {
        panic!("{fault}, after {} steps:\n{}\n{setting:?}", history.len(), history.join("\n"));
    }
}

/// Some history breaks a promise, this one in this way. Answers the length of the shortest.
fn caught(expected: &str, setting: Setting) -> usize {
    let found = search(&World::new(setting));
    let (fault, history) = found.fault.unwrap_or_else(|| panic!("not caught in {} states", found.states));
    println!("caught in {} states, {} steps: {fault}", found.states, history.len());
    println!("{}", history.join("\n"));
    assert_eq!(fault, expected);
    history.len()
}
