//! Relays and consumers at work on a private server.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use overdue::Client;
use overdue_sandbox::free_port;
use overdue_tests::redis::Options;
use overdue_tests::{Answer, Launch, Program, Receiver, Redis};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::work;

const RULES: &str = r#"
[relay]
grace = "100ms"
keyspace_events = "check"
[[watch]]
pattern = "session:*"
queue = "sessions"
[[group]]
queue = "plain"
name = "mail"
lease = "1s"
retry_wait = "10ms"
"#;
const NOTIFY: &str = "KEgxe";
const FLAGS: &str = "notify-keyspace-events";

/// All of it. It ends with this.
pub(crate) struct Scene {
    pub(crate) redis: Arc<Redis>,
    pub(crate) client: Client,
    /// Where `orders` goes for the group `billing`.
    pub(crate) receiver: Receiver,
    pub(crate) relays: Vec<Program>,
    /// Prints what `orders` has for the group `mail`.
    pub(crate) printer: Program,
    /// Whether the receiver rejects some of it.
    pub(crate) rejecting: Arc<AtomicBool>,
    /// Where they all serve metrics: two relays, three consumers, and one that is not started.
    pub(crate) listen: Vec<SocketAddr>,
    _others: [Program; 2],
    folder: TempDir,
    load: JoinHandle<()>,
}

impl Scene {
    pub(crate) async fn start() -> Self {
        let options =
            Options { notify: NOTIFY.into(), maxmemory: Some("200mb".into()), ..Options::default() };
        let redis = Arc::new(Redis::with(options));
        let rejecting = Arc::new(AtomicBool::new(false));
        let receiver = receiver(Arc::clone(&rejecting)).await;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("overdue.toml"), RULES).unwrap();
        let listen: Vec<_> = (0..6).map(|_| SocketAddr::from(([127, 0, 0, 1], free_port()))).collect();
        let consume = |at: usize, queue: &str, group: &str| consume(&redis, listen[at], queue, group);
        let others = [
            consume(2, "orders", "billing").args(["--webhook", &receiver.url("/timeouts")]).start(),
            consume(3, "sessions", "goodbye").args(["--print"]).start(),
        ];
        let printer = consume(4, "orders", "mail").args(["--print"]).start();
        let client = Client::connect(&redis.url()).await.unwrap();
        let load = tokio::spawn(work::run(client.clone(), Arc::clone(&redis)));
        let relays = vec![];
        let mut scene = Self {
            redis,
            client,
            receiver,
            relays,
            printer,
            rejecting,
            listen,
            _others: others,
            folder,
            load,
        };
        scene.start_relays();
        scene
    }

    /// Two relays, each where it was before.
    pub(crate) fn start_relays(&mut self) {
        let config = self.folder.path().join("overdue.toml").display().to_string();
        let start = |at: &SocketAddr| {
            Launch::new(["relay", "--redis", &self.redis.url(), "--config", &config])
                .args(["--listen", &at.to_string()])
                .start()
        };
        self.relays = self.listen[..2].iter().map(start).collect();
    }

    /// A consumer of a queue that nobody read.
    pub(crate) fn consume(&self, queue: &str) -> Program {
        consume(&self.redis, self.listen[5], queue, "first").args(["--print"]).start()
    }

    /// Notifications come no more.
    pub(crate) fn blind(&self) {
        self.redis.call(&["CONFIG", "SET", FLAGS, ""]);
    }

    /// They come again.
    pub(crate) fn see(&self) {
        self.redis.call(&["CONFIG", "SET", FLAGS, NOTIFY]);
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.load.abort();
    }
}

/// Fails the first attempt of some, and rejects some when it is told to.
async fn receiver(rejecting: Arc<AtomicBool>) -> Receiver {
    let receiver = Receiver::start().await;
    receiver.answer(move |request| match request.id() {
        id if id.starts_with("bad") && rejecting.load(Ordering::SeqCst) => {
            Answer::With(200, vec![("overdue-outcome", "reject".into())], "no such order".into())
        }
        id if id.starts_with("busy") && request.data("attempt") == 1 => Answer::Status(500),
        _ => Answer::Status(200),
    });
    receiver
}

fn consume(redis: &Redis, at: SocketAddr, queue: &str, group: &str) -> Launch {
    Launch::new(["consume", "--redis", &redis.url(), "--queue", queue, "--group", group])
        .args(["--listen", &at.to_string(), "--lease", "1s"])
        .env("OVERDUE_CONSUME_RETRY_WAIT", "100ms")
        .env("OVERDUE_CONSUME_PROBE_MAX", "1s")
}
