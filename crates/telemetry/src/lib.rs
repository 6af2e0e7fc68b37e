//! Metric names, logs, and the HTTP endpoints /metrics, /livez and /readyz.
//!
//! Telemetry hangs off the side: loops of other crates report here and read nothing back. Every metric
//! is a variant of [`Metric`]; the raw macros of the `metrics` crate are banned by `clippy.toml`.
//!
//! Without the feature `serve` there is nothing but the names and the health: all that a library needs.

pub mod health;
#[cfg(feature = "serve")]
pub mod http;
pub mod label;
#[cfg(feature = "serve")]
pub mod logs;
pub mod metric;
#[cfg(feature = "serve")]
mod process;
#[cfg(feature = "serve")]
pub mod registry;
pub mod throttle;

pub use health::{Health, Progress};
pub use metric::{Counter, Gauge, Histogram, Metric};
#[cfg(feature = "serve")]
pub use registry::Registry;
pub use throttle::Throttle;
