//! Leaving a primary that the Sentinels no longer name. It may go on answering for long, and what it expires has not
//! expired.

use std::sync::Arc;
use std::time::Duration;

use fred::interfaces::ClientLike;
use tokio::time::sleep;

use super::Inner;
use crate::connection::{Connection, by_chance};
use crate::endpoint::Place;
use crate::subscriber::sentinel::{Sentinels, addresses, is_same};

/// Between two questions; half to one and a half times.
const EVERY: Duration = Duration::from_secs(2);

/// Asks until it is aborted. What cannot be found out changes nothing.
pub(super) async fn heed(inner: Arc<Inner>) {
    let Place::Sentinel { hosts, service } = &inner.at.place else { return };
    let mut sentinels = Sentinels::new(hosts.clone(), service.clone());
    loop {
        sleep(by_chance(EVERY)).await;
        let Some(named) = sentinels.named(&inner.at, inner.dial.tls.as_ref()).await else { continue };
        for line in inner.map().peers().flat_map(|peer| peer.lines()) {
            let here = addresses_of(line).await;
            if !here.is_empty() && !here.iter().any(|&one| named.iter().any(|&other| is_same(one, other))) {
                line.reconnect("the Sentinels name another primary").await;
            }
        }
    }
}

/// The addresses of the server that a connection is to; none while there is no connection.
async fn addresses_of(line: &Connection) -> Vec<std::net::SocketAddr> {
    let Some(server) = line.client.active_connections().into_iter().next() else { return vec![] };
    addresses(&server.host, server.port).await.unwrap_or_default()
}
