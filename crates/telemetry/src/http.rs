//! `/metrics`, `/livez` and `/readyz` on one port, in plain text.

mod connection;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderName, StatusCode};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::http::connection::Bounded;
use crate::{Health, Registry};

/// How long answers under way may take once the server stops.
const DRAIN: Duration = Duration::from_secs(1);
/// The version tells Prometheus which text format this is.
const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN_TEXT: &str = "text/plain; charset=utf-8";
const INDEX: &str = "/metrics  what Prometheus reads\n/livez    503 when a restart would help\n\
                     /readyz   503 when the work does not get done\n";

/// A running server. Dropping it does not stop it; its `shutdown` token does.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// The address it is bound to: with port 0, the port that the system chose.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Waits until the server has stopped.
    pub async fn stopped(self) {
        // The task ends by itself and is never aborted; a panic in it has been reported.
        let _ = self.task.await;
    }
}

type Answer = (StatusCode, [(HeaderName, &'static str); 2], String);

/// Serves on `addr` (port 0 = any) until `shutdown`. Each connection carries one request and lives at most
/// 10 s, and there are at most 64 at once: a broken client costs nothing that lasts.
///
/// # Errors
/// The address can't be bound.
pub async fn serve(
    addr: SocketAddr,
    registry: Registry,
    health: Health,
    shutdown: CancellationToken,
) -> io::Result<Server> {
    let listener = TcpListener::bind(addr).await?;
    let addr = listener.local_addr()?;
    let task = tokio::spawn(run(Bounded::new(listener), router(registry, health), shutdown));
    Ok(Server { addr, task })
}

async fn run(listener: Bounded, router: Router, shutdown: CancellationToken) {
    let stop = shutdown.clone();
    let serving = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
    let drained = async {
        shutdown.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        _ = serving => {}
        () = drained => {}
    }
}

fn router(registry: Registry, health: Health) -> Router {
    Router::new()
        .route("/", get(|| async { answer(StatusCode::OK, PLAIN_TEXT, INDEX.to_owned()) }))
        .route("/metrics", get(metrics))
        .route(
            "/livez",
            get(|State((_, health)): State<(Registry, Health)>| async move { report(health.live()) }),
        )
        .route(
            "/readyz",
            get(|State((_, health)): State<(Registry, Health)>| async move { report(health.ready()) }),
        )
        .fallback(|| async {
            answer(StatusCode::NOT_FOUND, PLAIN_TEXT, format!("not found; there is\n{INDEX}"))
        })
        .with_state((registry, health))
}

async fn metrics(State((registry, health)): State<(Registry, Health)>) -> Answer {
    health.publish();
    answer(StatusCode::OK, PROMETHEUS_TEXT, registry.render())
}

fn report(report: crate::health::Report) -> Answer {
    let status = if report.ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    answer(status, PLAIN_TEXT, report.text)
}

/// Every answer closes its connection, so that idle clients hold nothing.
fn answer(status: StatusCode, content_type: &'static str, body: String) -> Answer {
    (status, [(CONTENT_TYPE, content_type), (CONNECTION, "close")], body)
}

#[cfg(test)]
mod tests;
