//! Handle timeouts once: the consumer library of Overdue.
//!
//! A [`Consumer`] reads the timeouts of one queue for one group, hands each to a handler, and does what the handler
//! answers: [`Outcome`]. The README says what is
//! promised and what breaks it, `docs/ARCHITECTURE.md` how it works.
//!
//! ```no_run
//! use overdue_consumer::{Consumer, Done, Timeout};
//! use overdue_store::Settings;
//!
//! #[derive(serde::Deserialize)]
//! struct Hold {
//!     seat: String,
//! }
//!
//! # async fn release(_: &Hold) -> std::io::Result<()> { Ok(()) }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let stop = async { drop(tokio::signal::ctrl_c().await) };
//! let report = Consumer::<Hold>::builder(Settings::default(), "orders", "billing")
//!     .concurrency(64)
//!     .run(|t: Timeout<Hold>| async move { release(t.payload()).await?; Ok(Done) }, stop)
//!     .await?;
//! println!("{} done", report.done);
//! # Ok(())
//! # }
//! ```
//!
//! A queue of watched keys often holds several kinds of them: [`Consumer::on`] gives each pattern of names a handler of its
//! own, and [`Timeout::rule`], [`Timeout::db`] and [`Timeout::proof`] say where a key was and how sure its end is. A handler
//! may have [`Terms`] of its own: attempts, a limit, waits.
//!
//! # Once
//! A handler may run twice for one timeout: its process or its lease may be lost before its outcome is written. Effects
//! outside are recorded under [`Timeout::idempotency_key`]. Effects in the same Redis need nothing of the kind:
//! [`Outcome::DoneWith`] writes them with the acknowledgement, or not at all.
//!
//! # What goes wrong
//! - An error or a panic is a retry; after the last attempt a dead letter with the error's chain.
//! - What a handler works with is down: [`Outcome::Unreachable`]. No attempt is spent, nothing is read, one timeout at a
//!   time is tried until it is back. [`Outcome::Postpone`] is for one timeout, [`Outcome::Halt`] until a person has acted.
//! - A process dies: what it held are *suspects*. Each runs alone in another process, and is a dead letter when three have
//!   died of it; no neighbour ever is.
//! - A handler blocks its thread: the others go on as long as the runtime has a thread that is free. One with a single
//!   thread has none: `spawn_blocking` is for such work.
//! - A lease is lost: the handler is dropped, [`Timeout::lost`] is cancelled, its outcome changes nothing.
//! - Redis is away: handlers go on, outcomes are kept and said when it is back.
//!
//! # Around handlers
//! Each runs in a span `timeout` (target `overdue_consumer::work`, level INFO) with `queue`, `id` and `attempt`; with a W3C
//! trace context given by whoever armed the timer also `trace_id`, `parent_id` and `span_id`, and
//! [`Timeout::traceparent`] is what to hand on. With the feature `tower` a service with its layers is a handler: `Tower`.
//!
//! # Invariants
//! - An entry in hand is never started again: not by a read, a claim or a recovery ([`hand`]).
//! - A read is never dropped: what it was given would be pending, and nobody would know.
//! - Nothing but a script that checks the owner puts a timeout elsewhere; so a late outcome changes nothing.
//! - Acknowledgements never wait for a blocked read: they go out on a connection of their own.
//! - The local clock may only make us stop earlier.
//! - Whoever is begun alone is counted before it begins, and nobody begins beside it before that is taken back.
//! - Nothing begins while what it works with is known to be down, but one probe; no lease is held for it.

mod away;
mod builder;
mod call;
mod clock;
mod counts;
mod crew;
mod duty;
mod effects;
mod hand;
mod handler;
mod keeping;
mod lane;
mod lease;
mod leaving;
mod lone;
mod options;
mod outcome;
mod pause;
mod payload;
mod policy;
mod pulse;
mod reach;
mod reading;
mod report;
mod route;
mod run;
mod station;
mod suspects;
mod taking;
mod terms;
mod timeout;
#[cfg(feature = "tower")]
mod tower;
mod work;

pub use builder::Consumer;
pub use effects::Effects;
pub use handler::Handler;
pub use outcome::{Done, HandlerError, IntoOutcome, Outcome};
pub use overdue_protocol::Effect;
pub use overdue_protocol::call::From;
pub use overdue_protocol::entry::{Kind, Proof, Source};
pub use overdue_store::Error;
pub use payload::{Payload, Raw};
pub use policy::{Backoff, Policy};
pub use report::Report;
pub use terms::{OnTerms, Terms};
pub use timeout::Timeout;
#[cfg(feature = "tower")]
pub use tower::Tower;
