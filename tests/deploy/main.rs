//! What we ship to be deployed works: Dockerfile, compose file, units, Kubernetes example, provisioning, tarball. There is no
//! container engine here: each container's command runs as a process, with its own configuration.

#![allow(clippy::unwrap_used, reason = "what goes wrong in a test fails it")]

mod compose;
mod container;
mod dist;
mod image;
mod kubernetes;
mod monitoring;
mod place;
mod tour;
mod units;
mod yaml;
