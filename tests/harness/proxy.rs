//! A faulty network: a TCP proxy between a client and its Redis.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

mod flow;

/// What happens to bytes in one direction. It holds for open and for new connections, from the next byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They are forwarded.
    Pass,
    /// They are swallowed; the connection stays up. After a lost reply a client that goes on reading takes
    /// the next reply for it, so most tests want [`Mode::Cut`].
    Drop,
    /// They are kept, and so is the end of the connection: a network that has gone silent. On the next
    /// mode what was kept is treated as that mode says.
    Hold,
    /// The connection is closed instead: towards the client the command was run and its reply is lost,
    /// towards the server the command never arrives.
    Cut,
    /// They are forwarded after this time, chunk by chunk.
    Delay(Duration),
}

/// What has passed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections open now.
    pub open: u64,
    /// Bytes forwarded to the server.
    pub up: u64,
    /// Bytes forwarded to the client.
    pub down: u64,
    /// Bytes swallowed in both directions.
    pub dropped: u64,
}

/// The proxy. It runs on a thread and runtime of its own, so that a test that blocks does not stop the network.
pub struct Proxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    target: Mutex<SocketAddr>,
    up: watch::Sender<Mode>,
    down: watch::Sender<Mode>,
    cuts: watch::Sender<u64>,
    refusing: AtomicBool,
    /// The number of the call of [`Proxy::only`], and its text.
    only: Mutex<Option<(u64, Vec<u8>)>>,
    only_calls: AtomicU64,
    accepted: AtomicU64,
    open: AtomicU64,
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
    dropped: AtomicU64,
}

impl Proxy {
    /// Listens on a free loopback port and forwards to `target`.
    ///
    /// # Panics
    /// No thread or no port is to be had.
    #[must_use]
    pub fn start(target: SocketAddr) -> Self {
        let shared = Arc::new(Shared {
            target: Mutex::new(target),
            up: watch::Sender::new(Mode::Pass),
            down: watch::Sender::new(Mode::Pass),
            cuts: watch::Sender::new(0),
            refusing: AtomicBool::new(false),
            only: Mutex::new(None),
            only_calls: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            open: AtomicU64::new(0),
            bytes_up: AtomicU64::new(0),
            bytes_down: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        });
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (bound, addr) = mpsc::channel();
        let theirs = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime for the proxy").block_on(async move {
                let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free loopback port");
                bound.send(listener.local_addr().expect("a bound listener has an address")).ok();
                tokio::select! {
                    () = flow::accept(&listener, &theirs) => {}
                    _ = stopped => {}
                }
            });
        });
        let addr = addr.recv().expect("the proxy listens");
        Self { addr, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// `redis://127.0.0.1:<port>/`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}/", self.addr)
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What happens to bytes from the client to the server.
    pub fn up(&self, mode: Mode) {
        self.shared.up.send_replace(mode);
    }

    /// What happens to bytes from the server to the client.
    pub fn down(&self, mode: Mode) {
        self.shared.down.send_replace(mode);
    }

    /// Both directions go silent, without FIN: `Mode::Hold` twice.
    pub fn blackhole(&self) {
        self.up(Mode::Hold);
        self.down(Mode::Hold);
    }

    /// Both directions pass again, new connections are let in, and no connection is singled out.
    pub fn heal(&self) {
        self.refuse(false);
        // First the modes: else the last one would hold for all connections for a moment.
        self.up(Mode::Pass);
        self.down(Mode::Pass);
        *self.shared.only.lock().expect("no holder panics") = None;
    }

    /// Closes every open connection now.
    pub fn cut(&self) {
        self.shared.cuts.send_modify(|n| *n += 1);
    }

    /// Closes new connections as soon as they are made.
    pub fn refuse(&self, refuse: bool) {
        self.shared.refusing.store(refuse, Ordering::SeqCst);
    }

    /// From now on the modes hold only for connections on which the client sends `text`
    /// (`PSUBSCRIBE`, `XREADGROUP`, a script's name ...), from that moment on.
    pub fn only(&self, text: &str) {
        let call = self.shared.only_calls.fetch_add(1, Ordering::SeqCst) + 1;
        *self.shared.only.lock().expect("no holder panics") = Some((call, text.as_bytes().to_vec()));
    }

    /// Forwards new connections to another server: what a moved address looks like.
    pub fn retarget(&self, target: SocketAddr) {
        *self.shared.target.lock().expect("no holder panics") = target;
    }

    /// What has passed so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let read = |n: &AtomicU64| n.load(Ordering::SeqCst);
        let s = &self.shared;
        Counters {
            accepted: read(&s.accepted),
            open: read(&s.open),
            up: read(&s.bytes_up),
            down: read(&s.bytes_down),
            dropped: read(&s.dropped),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use overdue_sandbox::Connection;

    use super::*;
    use crate::Redis;
    use crate::patience::eventually_blocking;

    fn through() -> (Redis, Proxy) {
        let redis = Redis::start();
        let proxy = Proxy::start(redis.addr());
        (redis, proxy)
    }

    #[test]
    fn a_reply_that_is_cut_off_belongs_to_a_command_that_was_run() {
        let (redis, proxy) = through();
        let mut client = Connection::tcp(proxy.addr()).unwrap();
        client.call(&["SET", "a", "1"]).unwrap();
        proxy.down(Mode::Cut);
        assert!(client.call(&["INCR", "a"]).is_err());
        assert_eq!(redis.count(&["GET", "a"]), 2);
        proxy.heal();
        proxy.up(Mode::Cut);
        let mut client = Connection::tcp(proxy.addr()).unwrap();
        assert!(client.call(&["INCR", "a"]).is_err());
        assert_eq!(redis.count(&["GET", "a"]), 2);
    }

    #[test]
    fn dropped_replies_never_arrive() {
        let (redis, proxy) = through();
        proxy.down(Mode::Drop);
        let mut client = Connection::tcp(proxy.addr()).unwrap();
        let asked = thread::spawn(move || client.call(&["INCR", "a"]));
        eventually_blocking("the command is run", || redis.count(&["EXISTS", "a"]) == 1);
        eventually_blocking("the reply is swallowed", || proxy.counters().dropped == 4);
        proxy.cut();
        assert!(asked.join().unwrap().is_err());
        eventually_blocking("the connection is gone", || proxy.counters().open == 0);
    }

    #[test]
    fn a_blackhole_keeps_connections_open_and_ends_with_everything_delivered() {
        let (redis, proxy) = through();
        let mut client = Connection::tcp(proxy.addr()).unwrap();
        client.call(&["SET", "a", "1"]).unwrap();
        proxy.blackhole();
        let before = proxy.counters();
        let asked = thread::spawn(move || client.call(&["INCR", "a"]));
        let clients = redis.call(&["CLIENT", "LIST", "TYPE", "NORMAL"]).text();
        assert_eq!(clients.lines().count(), 2, "{clients}");
        assert_eq!(proxy.counters(), before);
        proxy.heal();
        assert_eq!(asked.join().unwrap().unwrap().int(), Some(2));
    }

    #[test]
    fn one_connection_can_be_singled_out() {
        let (_redis, proxy) = through();
        let mut other = Connection::tcp(proxy.addr()).unwrap();
        let mut chosen = Connection::tcp(proxy.addr()).unwrap();
        proxy.only("mark-me");
        proxy.down(Mode::Cut);
        other.call(&["PING"]).unwrap();
        assert!(chosen.call(&["ECHO", "mark-me"]).is_err());
        other.call(&["PING"]).unwrap();
        proxy.refuse(true);
        assert!(Connection::tcp(proxy.addr()).unwrap().call(&["PING"]).is_err());
    }
}
