//! Consumers that only read and acknowledge, killed again and again. They run the text of docs/OPERATIONS.md.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use overdue_protocol::RawEntry;
use overdue_tests::interpreter::python;
use overdue_tests::{Launch, Program, Redis, Wire, assert_balanced, eventually};

use crate::stage::{Producer, ids, last, partition, settled, stop, up};

/// What the docs have in place of the queue's and the group's name.
const QUEUE: &str = "orders";
const GROUP: &str = "mail";
const TIMEOUTS: usize = 10_000;
/// How long they take to fall due.
const SPAN: Duration = Duration::from_secs(8);
const WORKERS: usize = 3;
/// All of them are killed so often, once a second.
const KILLINGS: usize = 8;
const ATTEMPTS: u32 = 5;

/// What the consumer of the docs imports. One id ends every process that handles it.
const SHOP: &str = r#"
import os, time
log = os.open(os.environ["HANDLED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def handle(id, payload, key):
    assert payload == b"hold", payload
    if id == b"poison":
        os.write(log, b"poison\n")
        os._exit(1)
    time.sleep(0.001)
    os.write(log, key.encode() + b"\n")
"#;

/// The consumer, as the docs show it.
fn consumer() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let docs = fs::read_to_string(root.join("docs/OPERATIONS.md")).unwrap();
    let section = docs.split("\n## Plain consumers\n").nth(1).expect("the docs have the section");
    let block = section.split("```python\n").nth(1).expect("it has a block").split("```").next().unwrap();
    let lines = block.lines().filter(|line| !line.is_empty()).count();
    assert!(lines <= 15, "{lines} lines:\n{block}");
    block.to_owned()
}

/// Processes that run the consumer; whoever ends is started again.
struct Workers {
    folder: tempfile::TempDir,
    url: String,
    running: Vec<Program>,
    killed: usize,
}

impl Workers {
    fn new(url: String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("consumer.py"), consumer()).unwrap();
        fs::write(folder.path().join("shop.py"), SHOP).unwrap();
        Self { folder, url, running: vec![], killed: 0 }
    }

    fn start(&self) -> Program {
        let path = |name: &str| self.folder.path().join(name).into_os_string();
        Launch::new([path("consumer.py")])
            .env("REDIS_URL", &self.url)
            .env("PYTHONPATH", self.folder.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("HANDLED", path("handled"))
            .start_as(Path::new(python()))
    }

    /// Starts those that are missing.
    fn see_to(&mut self) {
        for program in self.running.extract_if(.., |program| program.exited().is_some()) {
            assert_eq!(program.exited().and_then(|status| status.code()), Some(1), "{}", program.stderr());
            assert_eq!(program.stderr(), "", "it was to end without a word");
        }
        while self.running.len() < WORKERS {
            self.running.push(self.start());
        }
    }

    fn kill(&mut self) {
        for program in self.running.drain(..) {
            program.kill9();
            self.killed += 1;
        }
    }

    /// How often each key was handled.
    fn handled(&self) -> BTreeMap<String, usize> {
        let mut handled = BTreeMap::new();
        for line in fs::read_to_string(self.folder.path().join("handled")).unwrap().lines() {
            *handled.entry(line.to_owned()).or_default() += 1;
        }
        handled
    }
}

/// A relay that looks after the group, its settings in `folder`.
fn relay(redis: &Redis, folder: &Path) -> Program {
    let path = folder.join("overdue.toml");
    let group = format!(
        "[[group]]\nqueue = \"{QUEUE}\"\nname = \"{GROUP}\"\nlease = \"1s\"\nattempts = {ATTEMPTS}\n\
         retry_wait = \"10ms\"\nretry_wait_max = \"100ms\"\n"
    );
    fs::write(&path, group).unwrap();
    up(Launch::relay(&redis.url()).args(["--config".into(), path.into_os_string()]))
}

fn field(letter: &RawEntry, name: &str) -> String {
    String::from_utf8(letter.field(name).cloned().unwrap_or_default().to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_plain_consumers_killed_every_second_handle_all_and_the_poison_is_a_dead_letter() {
    let redis = Redis::start();
    let settings = tempfile::tempdir().unwrap();
    // Two: who moves what is decided in Redis.
    let relays = [relay(&redis, settings.path()), relay(&redis, settings.path())];
    let producer = Producer::new(&redis.url()).await;
    let start = redis.now_ms() + 500;
    let all = ids("t", TIMEOUTS - 1);
    for (n, page) in all.chunks(100).enumerate() {
        let share = SPAN.as_millis() as u64 * 100 / TIMEOUTS as u64;
        producer.arm(page, overdue::When::UnixMs(start + share * n as u64), false).await;
    }
    producer.arm(["poison"], overdue::When::UnixMs(start + 1_000), false).await;

    let mut workers = Workers::new(redis.url());
    for _ in 0..KILLINGS {
        last(Duration::from_secs(1), async || workers.see_to()).await;
        workers.kill();
    }
    eventually("the poison is dead", async || {
        workers.see_to();
        redis.count(&[b"XLEN".as_slice(), &partition(0).dead()]) == 1
    })
    .await;
    let poison = Wire::connect(&redis).xrange(partition(0).dead()).unwrap().remove(0);
    let said = ["id", "group", "reason", "attempt"].map(|name| field(&poison, name));
    assert_eq!(said, ["poison", GROUP, "attempts", &ATTEMPTS.to_string()]);
    assert!(field(&poison, "detail").contains("did not acknowledge it within 1000 ms"), "{poison:?}");
    eventually("all is handled", async || {
        workers.see_to();
        let left = redis.count(&[b"XLEN".as_slice(), &partition(0).stream()]);
        let waiting = redis.count(&[b"ZCARD".as_slice(), &partition(0).retry_index()]);
        if left + waiting == 0 { Ok(()) } else { Err((left, waiting)) }
    })
    .await;
    settled(&redis, 1).await;

    let mut handled = workers.handled();
    assert_eq!(handled.remove("poison"), Some(ATTEMPTS as usize), "it is tried so often, and no more");
    assert_eq!(handled.len(), TIMEOUTS - 1, "each is handled");
    let twice: usize = handled.values().map(|n| n - 1).sum();
    assert!(twice <= workers.killed, "{twice} were handled again, but {} were killed", workers.killed);
    assert_balanced(&redis, QUEUE, 1);
    let audit = Launch::new(["--redis", &redis.url(), "audit", QUEUE]).run();
    assert_eq!(audit.code, Some(0), "{audit:?}");
    relays.iter().for_each(stop);
}
