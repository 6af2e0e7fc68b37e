//! The terminal: taken for the view, and given back as it was.

use std::io::{IsTerminal as _, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

use super::frame::Frame;
use crate::exit::{Exit, Failure};

/// How soon the thread that reads keys sees that the view has ended.
const LOOK: Duration = Duration::from_millis(100);
/// Keys that wait for the view; while it is slow no more are read.
const KEYS: usize = 16;

/// What the person at the terminal wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// q, Esc, Ctrl-C, or the terminal is gone.
    End,
    /// The terminal has another size.
    Resized,
}

/// The terminal. Dropping it gives it back; after a panic ratatui's hook has done so before the message.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    keys: mpsc::Receiver<Key>,
    ended: Arc<AtomicBool>,
}

impl Screen {
    /// Whether somebody can look and type.
    pub(super) fn is_there() -> bool {
        stdin().is_terminal() && stdout().is_terminal()
    }

    /// Takes the terminal.
    ///
    /// # Errors
    /// The terminal refuses.
    pub(super) fn open() -> Result<Self, Failure> {
        let terminal = ratatui::try_init().map_err(|error| {
            ratatui::restore();
            Failure::new(Exit::Usage, format!("cannot draw on this terminal: {error}; use --once"))
        })?;
        let (sender, keys) = mpsc::channel(KEYS);
        let ended = Arc::<AtomicBool>::default();
        let seen = Arc::clone(&ended);
        // Reading keys blocks: not for a thread of the runtime.
        thread::spawn(move || read_keys(&sender, &seen));
        Ok(Self { terminal, keys, ended })
    }

    /// Draws a frame; what has not changed is not written again.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) fn draw(&mut self, frame: &Frame) -> Result<(), Failure> {
        self.terminal.draw(|canvas| canvas.render_widget(frame, canvas.area()))?;
        Ok(())
    }

    /// Waits for the next key that means something.
    pub(super) async fn key(&mut self) -> Key {
        self.keys.recv().await.unwrap_or(Key::End)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if !thread::panicking() {
            ratatui::restore();
        }
    }
}

fn read_keys(sender: &mpsc::Sender<Key>, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        let key = match event::poll(LOOK) {
            Ok(false) => continue,
            Ok(true) => event::read().ok().map_or(Some(Key::End), |event| meaning(&event)),
            Err(_) => Some(Key::End),
        };
        if let Some(key) = key
            && (sender.blocking_send(key).is_err() || key == Key::End)
        {
            return;
        }
    }
}

fn meaning(event: &Event) -> Option<Key> {
    match event {
        Event::Resize(..) => Some(Key::Resized),
        Event::Key(key) if key.kind != KeyEventKind::Release => match key.code {
            KeyCode::Char('q') | KeyCode::Esc => Some(Key::End),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::End),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn q_esc_and_ctrl_c_end_it_and_nothing_else_does() {
        let key = |code, modifiers| meaning(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), Some(Key::End));
        assert_eq!(key(KeyCode::Esc, KeyModifiers::NONE), Some(Key::End));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::End));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(key(KeyCode::Enter, KeyModifiers::NONE), None);
        assert_eq!(meaning(&Event::Resize(80, 24)), Some(Key::Resized));
    }
}
