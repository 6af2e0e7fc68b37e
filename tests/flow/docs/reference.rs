//! docs/REFERENCE.md: every setting and every command with its flags, as the program itself tells them. It is written anew
//! when it is out of date. What the other pages call by its name is in there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use overdue_tests::{Launch, binary};

use super::blocks::{files, text};

const NAME: &str = "docs/REFERENCE.md";
const HEAD: &str = "# Reference\n\n\
                    All settings and all commands, written by `tests/flow/docs/reference.rs` from what the program says: do not edit.\n\
                    Metrics are in [METRICS.md](METRICS.md), errors and exit codes in [OPERATIONS.md](OPERATIONS.md#errors).\n";

fn said(args: &[&str]) -> String {
    let finished = Launch::new(args).env("COLUMNS", "100").run();
    assert_eq!(finished.code, Some(0), "{args:?}: {finished:?}");
    // A copy of the program calls itself by its file's name.
    let binary = binary::find().unwrap();
    let usage = format!(" {} ", binary.file_name().unwrap().to_string_lossy());
    let text = finished.stdout.replace(&usage, " overdue ");
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The names under `Commands:` in a help.
fn commands(help: &str) -> Vec<String> {
    let list = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let rows = list.lines().take_while(|line| !line.is_empty());
    let names = rows.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    names
        .filter_map(|rest| rest.split(' ').next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// The help of a command and of those below it; what is the same everywhere stands once, in the first.
fn add(out: &mut String, path: &[&str]) {
    let help = said(&[path, &["-h"]].concat());
    let everywhere = help.find("\nEverywhere:\n").filter(|_| !path.is_empty());
    let shown = match everywhere {
        None => help.clone(),
        Some(at) => {
            let rest = &help[at + 1..];
            let rest = rest.find("\n\n").map_or("", |end| &rest[end + 1..]);
            format!("{}{rest}", &help[..at])
        }
    };
    let title = [&["overdue"], path].concat().join(" ");
    *out += &format!("\n### {title}\n\n```text\n{}\n```\n", shown.trim());
    for name in commands(&help) {
        add(out, &[path, &[&name]].concat());
    }
}

fn reference() -> String {
    let mut out =
        format!("{HEAD}\n## Settings\n\n```toml\n{}```\n\n## Commands\n", said(&["config", "sample"]));
    add(&mut out, &[]);
    out
}

/// Words of `text` that `is_part` holds together.
fn words(text: &str, is_part: impl Fn(char) -> bool) -> BTreeSet<String> {
    text.split(|c| !is_part(c)).map(|word| word.trim_end_matches('.').to_owned()).collect()
}

fn flags(text: &str) -> BTreeSet<String> {
    let words = words(text, |c| c.is_ascii_alphanumeric() || c == '-');
    words
        .into_iter()
        .filter(|word| {
            word.strip_prefix("--").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
        })
        .collect()
}

#[test]
fn it_is_what_the_program_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(NAME);
    let reference = reference();
    assert!(reference.contains("### overdue queues create"));
    if fs::read_to_string(&path).ok().as_deref() != Some(&reference) {
        fs::write(&path, reference).unwrap();
        panic!("{NAME} was out of date, and is now written anew");
    }
}

#[test]
fn every_flag_and_every_setting_that_a_page_names_is_in_the_reference() {
    // Of other programs: docker, cargo, apt, redis-cli.
    const FOREIGN: &[&str] = &[
        "--all-targets",
        "--bin",
        "--bins",
        "--build",
        "--check",
        "--examples",
        "--fake",
        "--init",
        "--locked",
        "--now",
        "--path",
        "--release",
        "--workspace",
    ];
    let reference = text(NAME);
    let known = flags(&reference);
    let sections = ["redis", "log", "client", "relay", "consume"];
    let mut settings: BTreeSet<String> = BTreeSet::new();
    let mut section = "";
    for line in reference.lines() {
        let head = line.trim_start_matches('#');
        if let Some(name) = head.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.trim_matches(['[', ']']);
        } else if let Some((name, _)) = line.strip_prefix('#').and_then(|line| line.split_once(" = ")) {
            settings.insert(format!("{section}.{name}"));
        }
    }
    assert!(settings.len() > 30 && known.len() > 30, "{settings:?} {known:?}");
    for page in files().into_iter().filter(|page| page != NAME) {
        let text = text(&page);
        let unknown: Vec<_> = flags(&text)
            .into_iter()
            .filter(|flag| !known.contains(flag) && !FOREIGN.contains(&flag.as_str()))
            .collect();
        assert!(unknown.is_empty(), "{page} names flags that no command has: {unknown:?}");
        let quoted = text.split('`').skip(1).step_by(2);
        let named = quoted.filter(|word| {
            word.split_once('.').is_some_and(|(section, name)| {
                sections.contains(&section) && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
            })
        });
        let unknown: Vec<_> = named.filter(|name| !settings.contains(*name) && !is_file(name)).collect();
        assert!(unknown.is_empty(), "{page} names settings that there are not: {unknown:?}");
    }
}

fn is_file(name: &str) -> bool {
    [".json", ".lua", ".md", ".rs", ".toml"].iter().any(|end| name.ends_with(end))
}
