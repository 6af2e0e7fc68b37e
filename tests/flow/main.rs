//! Whole flows without a fault: arm, fire, handle, and the programs from outside.

mod demo;

mod consumer;

mod commands;

mod client;

mod watch;

mod docs;

mod groups;

mod metrics;

mod versions;

mod peers;
