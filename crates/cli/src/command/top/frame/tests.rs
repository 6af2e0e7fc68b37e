use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::view::{Group, Process, Queue};
use super::*;

fn view() -> View {
    let queue = |level, queue: &str| Queue { level, queue: queue.to_owned(), ..Queue::default() };
    View {
        time: "2026-01-01T00:00:00.123Z".to_owned(),
        used_memory: 1_234_567,
        maxmemory: 0,
        queues: vec![
            Queue {
                overdue: 12_000,
                armed: 1_000_000,
                next_in_ms: Some(-61_000),
                fired_per_s: Some(1234.4),
                lateness_ms: Some(5_250),
                ..queue(Need::Bad, "orders")
            },
            Queue { paused: true, dead: 3, last_dead_age_ms: Some(7_000), ..queue(Need::Warn, "mails") },
            Queue { next_in_ms: Some(900_000), fired_per_s: Some(0.25), ..queue(Need::Ok, "sessions") },
        ],
        groups: vec![Group {
            level: Need::Bad,
            queue: "orders".to_owned(),
            group: "billing\u{1b}".to_owned(),
            backlog: Some(17),
            oldest_age_ms: Some(3_000),
            ..Group::default()
        }],
        processes: vec![Process {
            level: Need::Bad,
            role: "consumer".to_owned(),
            host: "a".to_owned(),
            pid: 7,
            version: "0.1.0".to_owned(),
            up_ms: 65_000,
            works_on: vec!["orders/billing".to_owned()],
            trouble: "the endpoint is down".to_owned(),
        }],
    }
}

fn frame(colours: bool) -> Frame {
    let mut frame = Frame::new("redis://here/, namespace overdue".to_owned(), colours);
    frame.show(view());
    frame
}

fn drawn(frame: &Frame, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|canvas| canvas.render_widget(frame, canvas.area())).unwrap();
    terminal
}

const WHOLE: &str = "\
overdue top  2026-01-01T00:00:00Z  redis://here/, namespace overdue  1,234,567 bytes used
no relay was seen in the last 10 s: nothing fires
 Queues: 3 ─────────────────────────────────────────────────────────────────────────────────────────
QUEUE               ARMED       NEXT  OVERDUE  FIRED/S  STREAM  RETRIES  DEAD  LAST DEAD  LATENESS
orders          1,000,000  1m 1s ago   12,000    1,234       0        0     0          -  5s 250ms
mails (paused)          0          -        0        -       0        0     3     7s ago         -
sessions                0     in 15m        0      0.2       0        0     0          -         -
 Groups: 1 ─────────────────────────────────────────────────────────────────────────────────────────
QUEUE   GROUP          LIVE  BACKLOG  PENDING  DONE/S  OLDEST
orders  billing\\u{1b}     0       17        0       -      3s
 Relays and consumers: 1 ───────────────────────────────────────────────────────────────────────────
ROLE      HOST  PID  VERSION     UP  WORKS ON
consumer  a       7  0.1.0    1m 5s  orders/billing: the endpoint is down";

#[test]
fn plain_text_has_everything() {
    let lines = frame(false).lines().join("\n");
    assert_eq!(lines, WHOLE, "{lines}");
}

#[test]
fn a_terminal_shows_the_same() {
    let width = WHOLE.lines().map(|line| line.chars().count()).max().unwrap();
    let terminal = drawn(&frame(false), u16::try_from(width).unwrap(), 14);
    let lines = lines_of(terminal.backend().buffer());
    assert_eq!(lines.join("\n").trim_end(), WHOLE);
}

#[test]
fn in_a_small_terminal_the_worst_rows_and_the_first_columns_stay() {
    let terminal = drawn(&frame(false), 50, 11);
    let text = terminal.backend().to_string();
    for part in [" Queues: 1 of 3 ", "\"orders          1,000,000  1m 1s ago   12,000 ", "orders/bill"] {
        assert!(text.contains(part), "{part:?}: {text}");
    }
    assert!(!text.contains("sessions") && !text.contains("LATENESS") && !text.contains("STREAM"), "{text}");
}

#[test]
fn colours_are_there_when_they_may_be() {
    let colours = |colours| {
        let terminal = drawn(&frame(colours), 110, 14);
        let buffer = terminal.backend().buffer();
        [4, 5, 6].map(|y| buffer[(0, y)].fg)
    };
    assert_eq!(colours(true), [Color::Red, Color::Yellow, Color::Reset]);
    assert_eq!(colours(false), [Color::Reset; 3]);
}

#[test]
fn what_is_old_says_so() {
    let mut frame = frame(false);
    frame.fail("cannot reach Redis".to_owned());
    let lines = frame.lines();
    assert_eq!(lines[1], "this is old: cannot reach Redis");
    assert!(lines.iter().any(|line| line.starts_with("orders ")), "{lines:#?}");
    frame.show(view());
    assert!(frame.lines()[1].starts_with("no relay"));
}
