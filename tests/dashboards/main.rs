//! What is in dashboards/: Grafana can load it, Prometheus knows all it asks for, and each alert fires under its fault.
#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

mod board;
mod expression;
mod files;
mod load;
mod prometheus;
mod rules;
mod scene;
mod work;
