//! Arm, re-arm and cancel timers that are never lost: the client library of Overdue.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Hold {
//!     seat: String,
//! }
//!
//! # async fn example() -> overdue::Result<()> {
//! let client = overdue::Client::connect("redis://127.0.0.1/").await?;
//! let orders = client.queue::<Hold>("orders").await?;
//! let hold = Hold { seat: "12A".into() };
//!
//! // In 15 minutes from the server's now, this becomes a timeout, unless...
//! let armed = orders.schedule("order-1001", Duration::from_secs(900), &hold).await?;
//! println!("generation {} is due at {:?}", armed.generation, armed.due());
//!
//! // ... it is put off,
//! orders.timer("order-1001").at(Duration::from_secs(1800)).payload(&hold).only_later().schedule().await?;
//!
//! // or cancelled.
//! orders.cancel("order-1001").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - One call arms at most one generation. Nothing is sent again after a lost answer: Redis is asked instead, and
//!   when it cannot tell, the error says so ([`ErrorKind::OutcomeUnknown`]).
//! - What was certainly not executed is tried again for up to 5 s ([`Builder::deadline`]).
//! - The deadline is the server's: a [`std::time::Duration`] counts from its now.
//! - Calls that are made at the same time share round trips, and calls for one id keep their order.
//!
//! What happens after the deadline, and what breaks it, stands in the README; the exact part in docs/PROTOCOL.md.

mod answer;
mod builder;
mod carrier;
mod client;
#[cfg(feature = "consumer")]
mod consuming;
mod departure;
mod error;
mod id;
mod journey;
mod lane;
mod lanes;
mod list;
mod page;
mod payload;
mod queue;
mod route;
mod timer;
mod when;

/// Handling timeouts: the crate `overdue-consumer`. Begin with [`Client::consumer`].
#[cfg(feature = "consumer")]
pub use overdue_consumer as consumer;

pub use answer::{Armed, ArmedTimer, Change, Scheduled};
pub use builder::Builder;
pub use client::Client;
pub use error::{Error, ErrorKind, Result};
pub use id::IntoTimerId;
pub use list::{List, Listed, Page};
pub use overdue_protocol::call::Mode;
pub use overdue_protocol::{Generation, InvalidName, QueueName, TimerId};
pub use overdue_store::Settings;
pub use payload::{Decode, Encode, Encoding, Raw};
pub use queue::Queue;
pub use timer::Timer;
pub use when::When;
