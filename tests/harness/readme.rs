//! The README, played: what a new user types, in the order in which it stands there.

use crate::blocks::commands;
use crate::patience::eventually_blocking;
use crate::terminal::{SECRET, Terminal};

/// Runs each command of `readme` that needs no checkout, and sees to it that each says what is written there.
///
/// # Panics
/// One ends with an error, or does not say it.
pub fn play(readme: &str, terminal: &Terminal) {
    terminal.file("secret", SECRET);
    // Whoever has no PHP: what counts is that it is given a line, and its answer.
    terminal.program(
        "php",
        r#"[ "$*" = "artisan overdue:work" ] || exit 1
while read -r line; do
  key=${line#*'"key":"'}
  echo "worked on $line" >&2
  printf '{"key":"%s","outcome":"done"}\n' "${key%%'"'*}"
done"#,
    );
    let of_the_checkout = |line: &String| line.starts_with("./scripts/") || line.starts_with("cargo install");
    let lines: Vec<_> = commands(readme).into_iter().filter(|line| !of_the_checkout(line)).collect();
    // Here none listens where others do; a new user runs them all on one machine.
    let consumers = lines.iter().filter(|line| line.starts_with("overdue consume "));
    assert!(
        consumers.skip(1).all(|line| line.contains(" --listen ")),
        "two consumers listen at one port: {lines:#?}"
    );
    let stays = |line: &str| line.starts_with("overdue relay") || line.starts_with("overdue consume");
    let mut running = vec![];
    for line in &lines {
        let mut command = terminal.run(line);
        if stays(line) {
            running.push(command);
        } else {
            assert_eq!(command.code(), 0, "{line}\n{}", command.output());
        }
    }
    assert_eq!((lines.len(), running.len()), (7, 5), "{lines:#?}");
    // Nothing listens at the webhook's URL here.
    let said = [
        "session:42 is over\n",
        "order 1001 is overdue: orders/order-1001/",
        "it tries again until it can, no attempt is spent",
        r#"worked on {"key":"orders/order-1001/"#,
    ];
    assert!(readme.contains(&format!("`{}`", said[0].trim_end())));
    for (consumer, said) in running[1..].iter().zip(said) {
        eventually_blocking(said, || {
            let output = consumer.output();
            if output.contains(said) { Ok(()) } else { Err(output) }
        });
    }
    for command in &mut running {
        command.assert_runs();
    }
}
