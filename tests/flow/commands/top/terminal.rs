//! `top` on a terminal of its own; and what else is for terminals alone: colours, and how far a long command is.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, Termios, tcgetattr};
use nix::unistd::Pid;
use overdue_tests::{binary, eventually_blocking, patience};

use super::{Stage, partition};

/// More than the time after which a command says how far it is.
const LONG: Duration = Duration::from_millis(1_500);
const TAKEN: &str = "\x1b[?1049h";
const GIVEN_BACK: &str = "\x1b[?1049l";

/// A terminal with a command on it.
struct Terminal {
    ours: File,
    theirs: File,
    child: Child,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn start(stage: &Stage) -> Self {
        Self::run(stage, &["top"], &[])
    }

    fn run(stage: &Stage, command: &[&str], environment: &[(&str, &str)]) -> Self {
        let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        let (ours, theirs) = (File::from(pty.master), File::from(pty.slave));
        let end = || Stdio::from(theirs.try_clone().unwrap());
        let child = Command::new(binary::find().unwrap())
            .args(["--redis", &stage.redis.url()])
            .args(command)
            .env_clear()
            .env("TERM", "xterm")
            .envs(environment.iter().copied())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let (into, mut from) = (Arc::clone(&written), ours.try_clone().unwrap());
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut bytes) {
                into.lock().unwrap().extend_from_slice(&bytes[..n]);
            }
        });
        Self { ours, theirs, child, written }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    fn wait_for(&self, part: &str) {
        eventually_blocking("it is on the terminal", || {
            let text = self.text();
            if text.contains(part) { Ok(()) } else { Err(format!("{part:?}: {text:?}")) }
        });
    }

    fn modes(&self) -> Termios {
        tcgetattr(&self.theirs).unwrap()
    }

    fn wait_exit(&mut self) -> Option<i32> {
        let mut code = None;
        eventually_blocking("it ends", || match self.child.try_wait().unwrap() {
            Some(status) => {
                code = status.code();
                Ok(())
            }
            None => Err(format!("it runs after {:?}", patience())),
        });
        code
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_way_to_end_it_leaves_the_terminal_as_it_was() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    for (keys, code) in [(Some("q"), 0), (Some("\x1b"), 0), (Some("\x03"), 0), (None, 130)] {
        let mut terminal = Terminal::start(&stage);
        let before = terminal.modes();
        assert!(before.local_flags.contains(LocalFlags::ICANON));
        terminal.wait_for(TAKEN);
        terminal.wait_for("orders");
        assert!(!terminal.modes().local_flags.intersects(LocalFlags::ICANON | LocalFlags::ECHO));
        match keys {
            Some(keys) => terminal.ours.write_all(keys.as_bytes()).unwrap(),
            None => {
                let pid = Pid::from_raw(i32::try_from(terminal.child.id()).unwrap());
                kill(pid, Signal::SIGTERM).unwrap();
            }
        }
        assert_eq!(terminal.wait_exit(), Some(code), "{keys:?}");
        terminal.wait_for(GIVEN_BACK);
        assert_eq!(terminal.modes(), before, "{keys:?}");
    }
}

#[test]
fn when_redis_goes_it_says_so_and_goes_on() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    let mut terminal = Terminal::start(&stage);
    terminal.wait_for("orders");
    stage.redis.kill9();
    // Only words that changed are written: `this is old: ...`.
    terminal.wait_for("old:");
    terminal.ours.write_all(b"q").unwrap();
    assert_eq!(terminal.wait_exit(), Some(0));
}

#[test]
fn colours_are_for_terminals_alone_and_nobody_has_to_have_them() {
    let stage = Stage::new();
    assert!(!stage.code(4, "doctor").stdout.contains('\x1b'));
    for (environment, is_coloured) in
        [(&[][..], true), (&[("NO_COLOR", "1")], false), (&[("NO_COLOR", "")], true)]
    {
        let mut terminal = Terminal::run(&stage, &["doctor"], environment);
        terminal.wait_for("no relay was seen");
        assert_eq!(terminal.wait_exit(), Some(4));
        assert_eq!(terminal.text().contains('\x1b'), is_coloured, "{environment:?}: {:?}", terminal.text());
    }
}

#[test]
fn an_audit_that_takes_long_says_how_far_it_is() {
    let stage = Stage::new();
    stage.ok("queues create orders");
    let script = "for i = 1, 5000 do redis.call('XADD', KEYS[1], '*', 'id', 'a', 'payload', ARGV[1]) end";
    for _ in 0..4 {
        stage.redis.call(&[
            b"EVAL".as_slice(),
            script.as_bytes(),
            b"1",
            &partition("orders").stream(),
            &[b'x'; 4_000],
        ]);
    }
    // Longer than anybody waits without a word, whatever the machine: Redis answers later than that.
    stage.redis.sigstop();
    let mut terminal = Terminal::run(&stage, &["audit", "orders"], &[]);
    let sockets = || {
        let fds = fs::read_dir(format!("/proc/{}/fd", terminal.child.id())).unwrap();
        fds.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok())
            .filter(|file| file.to_string_lossy().starts_with("socket"))
            .count()
    };
    eventually_blocking("it has begun", || if sockets() > 0 { Ok(()) } else { Err(()) });
    let begun = Instant::now();
    eventually_blocking("it has waited", || if begun.elapsed() > LONG { Ok(()) } else { Err(()) });
    stage.redis.sigcont();
    terminal.wait_for(" of 20000 entries");
    assert_eq!(terminal.wait_exit(), Some(0));
    let piped = stage.code(0, "audit orders");
    assert_eq!(piped.stderr, "");
}
