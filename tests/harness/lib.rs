//! The test harness: own servers, programs, a faulty proxy and a ledger.
//!
//! Every test owns its server. Nothing here sleeps to synchronise: [`mod@patience`] is the one place that waits.

pub mod binary;
pub mod blocks;
pub mod books;
pub mod cluster;
pub mod http;
pub mod interpreter;
pub mod ledger;
pub mod metrics;
pub mod patience;
pub mod program;
pub mod proxy;
pub mod readme;
pub mod receiver;
pub mod redis;
pub mod sentinel;
pub mod stage;
pub mod terminal;
pub mod tls;
pub mod watched;
pub mod wire;

pub use books::assert_balanced;
pub use cluster::Cluster;
pub use ledger::Ledger;
pub use patience::{eventually, eventually_blocking, patience};
pub use program::{Launch, Program};
pub use proxy::{Mode, Proxy};
pub use receiver::{Answer, Receiver};
pub use redis::Redis;
pub use sentinel::Sentinel;
pub use stage::Stage;
pub use terminal::Terminal;
pub use tls::Tls;
pub use watched::FiredKey;
pub use wire::Wire;
