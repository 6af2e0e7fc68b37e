//! Frames cut at every byte: what came whole is told, nothing else, and then there is a gap.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use overdue_store::{Node, Settings, Signal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{any, event, message, open};

/// Two confirmations with a message of the first pattern between them; then the rest.
const CONFIRMED: &[u8] = b"*3\r\n$10\r\npsubscribe\r\n$2\r\na*\r\n:1\r\n\
    *4\r\n$8\r\npmessage\r\n$2\r\na*\r\n$1\r\na\r\n$5\r\nearly\r\n\
    *3\r\n$10\r\npsubscribe\r\n$2\r\nb*\r\n:2\r\n";
const TOLD: [&[u8]; 3] = [
    b"*4\r\n$8\r\npmessage\r\n$2\r\na*\r\n$1\r\na\r\n$4\r\n\r\n$9\r\n",
    b"*2\r\n$4\r\npong\r\n$0\r\n\r\n",
    b"*4\r\n$8\r\npmessage\r\n$2\r\nb*\r\n$17\r\n__keyspace@0__:\xff\r\r\n$7\r\nexpired\r\n",
];

/// A server that lets the first connection have so many bytes of the script, and the next ones all.
async fn server(first: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}/", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let all = connections.fetch_add(1, Ordering::SeqCst) > 0;
            tokio::spawn(serve(socket, if all { usize::MAX } else { first }));
        }
    });
    url
}

async fn serve(mut socket: TcpStream, allowed: usize) {
    let script = [CONFIRMED, &TOLD.concat()].concat();
    let mut asked = vec![0; 4096];
    while let Ok(n @ 1..) = socket.read(&mut asked).await {
        let asked = String::from_utf8_lossy(&asked[..n]).into_owned();
        if asked.contains("SETNAME") {
            socket.write_all(b"+OK\r\n").await.unwrap();
        }
        if asked.contains("PSUBSCRIBE") {
            socket.write_all(&script[..allowed.min(script.len())]).await.unwrap();
            if allowed < script.len() {
                return;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_cut_at_any_byte_is_a_gap_and_nothing_is_made_up() {
    let whole = CONFIRMED.len() + TOLD.concat().len();
    let told = [message("a", "\r\n$9"), event(0, "expired", b"\xff\r".to_vec())];
    let mut runs = JoinSet::new();
    for cut in 0..whole {
        let told = told.clone();
        runs.spawn(async move {
            let settings = Settings::new(server(cut).await);
            let (server, opened) = (Node::server(), open(&settings, &["a*", "b*"], 64).await);
            let Ok((_subscriber, mut signals)) = opened else {
                assert!(cut < CONFIRMED.len(), "confirmed, but not open: cut at {cut}");
                return;
            };
            assert!(cut >= CONFIRMED.len(), "open, but not confirmed: cut at {cut}");
            let ends = [TOLD[0].len(), TOLD.concat().len()].map(|end| CONFIRMED.len() + end);
            let before = ends.iter().filter(|end| **end <= cut).count();
            let mut wanted = vec![Signal::Opened(server.clone()), Signal::Up];
            wanted.extend_from_slice(&told[..before]);
            wanted.extend([Signal::Closed(server.clone()), Signal::Down, Signal::Opened(server), Signal::Up]);
            wanted.extend(told);
            for (i, wanted) in wanted.into_iter().enumerate() {
                assert_eq!(any(&mut signals).await, wanted, "cut at {cut}, signal {i}");
            }
        });
    }
    while let Some(run) = runs.join_next().await {
        run.unwrap();
    }
}
