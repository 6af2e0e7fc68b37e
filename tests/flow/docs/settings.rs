//! Every settings block and every command of the docs is understood.

use super::blocks::{blocks, commands, files, text};
use super::terminal::{SECRET, Terminal};

/// Exit codes of a command that was understood: done, or there is no Redis.
const UNDERSTOOD: [i32; 2] = [0, 3];

#[test]
fn every_settings_block_passes_the_check() {
    let terminal = Terminal::nowhere();
    let mut seen = 0;
    for name in files() {
        for block in blocks(&text(&name), "toml") {
            terminal.file("overdue.toml", &block);
            let mut check = terminal.run("overdue config check --config overdue.toml");
            assert_eq!(check.code(), 0, "{name}\n{block}{}", check.output());
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen}");
}

#[test]
fn every_command_is_understood() {
    let terminal = Terminal::nowhere();
    terminal.file("overdue.toml", "");
    terminal.file("secret", SECRET);
    for program in ["java", "python3", "php"] {
        terminal.program(program, "exit 0");
    }
    let mut seen = 0;
    for name in files() {
        for line in commands(&text(&name)).iter().filter(|line| line.starts_with("overdue ")) {
            // They bring a Redis of their own and take minutes: tests/flow/demo.rs runs them.
            if ["overdue bench", "overdue demo"].iter().any(|long| line.starts_with(long)) {
                continue;
            }
            let mut command = terminal.run(line);
            assert!(UNDERSTOOD.contains(&command.code()), "{name}: {line}\n{}", command.output());
            seen += 1;
        }
    }
    assert!(seen >= 7, "{seen}");
}
