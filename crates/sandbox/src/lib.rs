//! A private redis-server: own folder, own port and socket, killed by its handle.
//!
//! For the demo, the benchmarks and the tests. Everything here is synchronous and needs no runtime: a server
//! answers some 30 ms after [`Redis::start`]. Nothing is ever killed by name, and nothing is left behind: a
//! [`Guard`] ends each child even when the parent was killed with SIGKILL.

mod error;
mod options;
mod port;
mod process;
mod redis;
mod resp;

pub use error::{Error, ErrorKind};
pub use options::Options;
pub use port::free_port;
pub use process::{Guard, Process};
pub use redis::Redis;
pub use resp::{Connection, Value};
