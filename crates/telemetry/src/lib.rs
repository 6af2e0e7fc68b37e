//! Metric names, logs, and the HTTP endpoints /metrics, /livez and /readyz.
//!
//! Telemetry hangs off the side: loops of other crates report here and read nothing back. Every metric
//! is a variant of [`Metric`]; the raw macros of the `metrics` crate are banned by `clippy.toml`.

pub mod health;
pub mod http;
pub mod label;
pub mod logs;
pub mod metric;
pub mod registry;
pub mod throttle;

pub use health::{Health, Progress};
pub use metric::{Counter, Gauge, Histogram, Metric};
pub use registry::Registry;
pub use throttle::Throttle;
