//! `top` on a terminal of its own.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, Termios, tcgetattr};
use nix::unistd::Pid;
use overdue_tests::{binary, eventually_blocking, patience};

use super::Stage;

const TAKEN: &str = "\x1b[?1049h";
const GIVEN_BACK: &str = "\x1b[?1049l";

/// A terminal with `overdue top` on it.
struct Terminal {
    ours: File,
    theirs: File,
    child: Child,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn start(stage: &Stage) -> Self {
        let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).unwrap();
        let (ours, theirs) = (File::from(pty.master), File::from(pty.slave));
        let end = || Stdio::from(theirs.try_clone().unwrap());
        let child = Command::new(binary::find().unwrap())
            .args(["--redis", &stage.redis.url(), "top"])
            .env_clear()
            .env("TERM", "xterm")
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

    fn wait_for(&self, part: &str) {
        eventually_blocking("it is on the terminal", || {
            let text = String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned();
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
