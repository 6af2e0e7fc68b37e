//! Free loopback ports.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::TcpListener;

/// Below the kernel's ephemeral range (32768 and up): a client that keeps calling a port whose server is
/// down can otherwise be given that very port for itself, and is then connected to itself.
/// Cluster nodes talk on port + 10000: the upper half of what is below that range is left to them.
const FIRST: u16 = 12_000;
const COUNT: u16 = 10_000;

/// A loopback port on which nobody listens at the moment, and nobody on port + 10000.
///
/// Somebody else may take it before it is used: whoever starts a server on it tries again with another.
///
/// # Panics
/// Two hundred ports in a row are taken.
#[must_use]
pub fn free_port() -> u16 {
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    (0..200)
        .map(|_| FIRST + u16::try_from(random() % u64::from(COUNT)).expect("below COUNT"))
        .find(|&port| free(port) && free(port + COUNT))
        .expect("one in 200 loopback ports between 12000 and 22000 should be free")
}

/// Hash keys are random in each process: enough to keep parallel tests apart.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
