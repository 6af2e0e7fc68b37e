//! Redis for Overdue: connections, scripts, streams, subscriptions, errors.
//!
//! Only this crate names the client library, fred, and gives its traps no way out. Commands go through it;
//! subscriptions are read here, for it loses their order and keys that are not UTF-8, and so are the pages of blocked
//! readers, of which it makes four copies (but on a cluster, where it finds the node).
//!
//! - Nothing is ever sent twice. A call whose outcome is not known says so: [`ErrorKind::OutcomeUnknown`].
//! - A subscription is [`Signal::Up`] only after the server said that it holds it, and what was lost is counted.
//! - One node of a cluster that is down holds up nobody but those who ask it ([`Store`], [`Nodes`]).
//! - A blocked reader has a connection of its own ([`Reader`]), and so has every subscription ([`Subscriber`]).
//! - A server that hangs is noticed and left; reconnecting goes on for ever, with jitter.
//! - Text that users wrote never stands where the client library looks for its own words.
//!
//! A runtime with at least two worker threads is needed: on one thread, subscriptions starve under load.

mod backoff;
mod commands;
mod connection;
mod dial;
mod endpoint;
mod error;
mod fault;
mod frame;
mod groups;
mod keeper;
mod members;
mod meter;
mod node;
mod nodes;
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
pub mod tls;
mod topology;
mod watched;
mod way;

pub use backoff::Backoff;
pub use error::{Error, ErrorKind, Executed, Result};
pub use groups::Unfinished;
pub use node::{Feed, Node};
pub use nodes::Nodes;
pub use overdue_protocol::watch::{Capture, Touched};
pub use reader::Reader;
pub use server::ServerInfo;
pub use settings::{Secret, Settings};
pub use signal::Signal;
pub use store::Store;
pub use streams::{ConsumerInfo, GroupInfo, Pending};
pub use subscriber::Subscriber;
