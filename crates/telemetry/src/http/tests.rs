use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;
use crate::label::Loop;

/// The longest wait for anything that should happen at once.
const PATIENCE: Duration = Duration::from_secs(10);

async fn start() -> (SocketAddr, Health, CancellationToken, Server) {
    let (health, shutdown) = (Health::default(), CancellationToken::new());
    let registry = Registry::install("test", "relay", "overdue").unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = serve(any, registry, health.clone(), shutdown.clone()).await.unwrap();
    (server.addr(), health, shutdown, server)
}

/// Sends `request` and reads until the server closes.
async fn exchange(addr: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("an answer and a close").unwrap();
    answer
}

async fn fetch(addr: SocketAddr, path: &str) -> String {
    exchange(addr, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).await
}

#[tokio::test]
async fn the_three_pages_answer_on_any_free_port() {
    let (addr, health, ..) = start().await;
    assert_ne!(addr.port(), 0);
    let metrics = fetch(addr, "/metrics").await;
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    assert!(metrics.contains("content-type: text/plain; version=0.0.4"), "{metrics}");
    assert!(
        metrics.contains("overdue_build_info{namespace=\"overdue\",version=\"test\",role=\"relay\"} 1"),
        "{metrics}"
    );

    assert!(fetch(addr, "/livez").await.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(fetch(addr, "/readyz").await.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
    health.register(Loop::Sweep, "orders:0", Duration::from_secs(5)).succeed();
    let ready = fetch(addr, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200 OK\r\n") && ready.contains("sweep orders:0"), "{ready}");
}

#[tokio::test]
async fn another_path_is_not_found_and_the_root_lists_what_there_is() {
    let (addr, ..) = start().await;
    let missing = fetch(addr, "/health").await;
    assert!(missing.starts_with("HTTP/1.1 404 Not Found\r\n") && missing.contains("/livez"), "{missing}");
    let root = fetch(addr, "/").await;
    for path in ["/metrics", "/livez", "/readyz"] {
        assert!(root.contains(path), "{root}");
    }
}

#[tokio::test]
async fn broken_clients_do_not_disturb_others() {
    let (addr, ..) = start().await;
    let mut half = TcpStream::connect(addr).await.unwrap();
    half.write_all(b"GET /metr").await.unwrap();
    drop(TcpStream::connect(addr).await.unwrap());
    assert!(exchange(addr, "\u{0}\u{1}nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    assert!(fetch(addr, "/livez").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn it_stops_although_a_client_hangs() {
    let (addr, _, shutdown, server) = start().await;
    let mut half = TcpStream::connect(addr).await.unwrap();
    half.write_all(b"GET /metr").await.unwrap();
    assert!(fetch(addr, "/livez").await.starts_with("HTTP/1.1 200"));
    shutdown.cancel();
    timeout(PATIENCE, server.stopped()).await.expect("the server stops");
    assert!(TcpStream::connect(addr).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn a_port_in_use_is_an_error() {
    let (addr, health, shutdown, _server) = start().await;
    let registry = Registry::install("test", "relay", "overdue").unwrap();
    let error = serve(addr, registry, health, shutdown).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}
