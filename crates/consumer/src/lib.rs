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
//! own, and [`Timeout::rule`], [`Timeout::db`] and [`Timeout::proof`] say where a key was and how sure its end is.
//!
//! # Invariants
//! - An entry in hand is never started again: not by a read, a claim or a recovery ([`hand`]).
//! - A read is never dropped: what it was given would be pending, and nobody would know.
//! - Nothing but a script that checks the owner puts a timeout elsewhere; so a late outcome changes nothing.
//! - Acknowledgements never wait for a blocked read: they go out on a connection of their own.
//! - The local clock may only make us stop earlier.

mod builder;
mod call;
mod clock;
mod counts;
mod crew;
mod hand;
mod handler;
mod keeping;
mod lane;
mod lease;
mod leaving;
mod options;
mod outcome;
mod pause;
mod payload;
mod policy;
mod reading;
mod report;
mod route;
mod run;
mod station;
mod taking;
mod timeout;
mod work;

pub use builder::Consumer;
pub use handler::Handler;
pub use outcome::{Done, HandlerError, IntoOutcome, Outcome};
pub use overdue_protocol::call::From;
pub use overdue_protocol::entry::{Kind, Proof, Source};
pub use overdue_store::Error;
pub use payload::{Payload, Raw};
pub use policy::{Backoff, Policy};
pub use report::Report;
pub use timeout::Timeout;
