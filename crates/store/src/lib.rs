//! Redis for Overdue: connections, scripts, streams, subscriptions, errors.
//!
//! Only this crate names the client library, and it gives that library's traps no way out:
//!
//! - Nothing is ever sent twice. A call whose outcome is not known says so: [`ErrorKind::OutcomeUnknown`].
//! - A subscription is [`Signal::Up`] only after the server said that it holds it, and what was lost is counted.
//! - A blocked reader has a connection of its own ([`Reader`]), and so has every subscription ([`Subscriber`]).
//! - A server that hangs is noticed and left; reconnecting goes on for ever, with jitter.
//! - Text that users wrote never stands where the client library looks for its own words.
//!
//! A runtime with at least two worker threads is needed: on one thread, subscriptions starve under load.

mod connection;
mod dial;
mod endpoint;
mod error;
mod fault;
mod frame;
mod keeper;
mod members;
mod order;
mod probe;
mod queues;
mod reader;
mod script;
mod server;
mod settings;
mod signal;
mod store;
mod streams;
mod subscriber;
mod tally;
mod timers;
mod tls;

pub use error::{Error, ErrorKind, Executed, Result};
pub use reader::Reader;
pub use server::ServerInfo;
pub use settings::{Secret, Settings};
pub use signal::Signal;
pub use store::Store;
pub use streams::{ConsumerInfo, GroupInfo, Pending};
pub use subscriber::Subscriber;
