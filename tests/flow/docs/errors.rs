//! docs/OPERATIONS.md, "Errors": each error, exit code, line of the log, flaw, reason and check of the program has its line
//! there, and each line is of one that exists.

use std::collections::BTreeSet;
use std::fs;

use overdue_protocol::watch::{Captured, Found};
use overdue_store::ErrorKind;
use overdue_tests::Launch;

use super::blocks::{root, text};
use super::sources::{calls, crates, source, variants, without_tests};

type Words = BTreeSet<String>;

fn words<T: ToString>(words: impl IntoIterator<Item = T>) -> Words {
    words.into_iter().map(|word| word.to_string()).collect()
}

/// The first cells of the tables of OPERATIONS that begin with `head`.
fn cells(head: &str) -> Vec<String> {
    let operations = text("docs/OPERATIONS.md");
    let head = format!("\n| {head} |");
    let tables = operations.split(&head).skip(1);
    let rows = tables.flat_map(|table| table.lines().skip(2).take_while(|line| line.starts_with('|')));
    let cells: Vec<_> = rows.map(|row| row[2..].split(" | ").next().unwrap().to_owned()).collect();
    assert!(cells.len() > 4, "{head}: {cells:?}");
    cells
}

/// What stands in backticks in these cells.
fn explained(head: &str) -> Vec<String> {
    let quoted = |cell: &String| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    cells(head).iter().flat_map(quoted).collect()
}

/// Each once, and no other.
#[track_caller]
fn assert_explained(head: &str, there_are: &Words) {
    let explained = explained(head);
    assert_eq!(&words(&explained), there_are, "{head}");
    assert_eq!(explained.len(), there_are.len(), "{head}: one stands there twice");
}

#[test]
fn kinds() {
    assert_explained("kind", &words(ErrorKind::ALL.map(ErrorKind::as_str)));
    assert_explained("`overdue::ErrorKind`", &words(variants("client/src/error.rs", "enum ErrorKind")));
}

#[test]
fn exit_codes() {
    let source = source("cli/src/exit.rs");
    let body = source.split("enum Exit {").nth(1).unwrap().split('}').next().unwrap();
    let codes = body.lines().filter_map(|line| line.split(" = ").nth(1)?.strip_suffix(','));
    assert_eq!(words(cells("code")), words(codes));
}

#[test]
fn flaws() {
    let captured =
        [Found::Large(9), Found::OtherType, Found::Missing].map(|found| Captured::of(found, 9).flaw);
    let record = fs::read_to_string(root().join("lua/lib/record.lua")).unwrap();
    let record = record.split('\'').filter(|text| text.ends_with(" record") && text.len() < 12);
    assert_explained("flaw", &words(captured.into_iter().chain(record)));
}

#[test]
fn reasons_of_dead_letters() {
    let help = Launch::new(["dead", "list", "--help"]).run().stdout;
    let list = help.split("Possible values:\n").nth(1).unwrap();
    let reasons = list.lines().map_while(|line| line.trim().strip_prefix("- ")?.split(':').next());
    assert_explained("reason", &words(reasons));
}

#[test]
fn places_of_a_timeout() {
    let places = variants("cli/src/command/show/sight.rs", "enum Where");
    assert_explained("place", &words(places.iter().map(|place| place.to_lowercase())));
}

#[test]
fn checks_of_the_doctor() {
    let sources = source("cli/src/command/doctor.rs") + &without_tests("cli/src/command/doctor");
    let mut checks = Words::new();
    for begin in ["Finding::ok(", "Finding::warn(", "Finding::bad("] {
        let after = sources.split(begin).skip(1).map(str::trim_start);
        checks.extend(after.filter_map(|rest| Some(rest.strip_prefix('"')?.split('"').next()?.to_owned())));
    }
    checks.extend(
        sources
            .split("const CHECK: &str = \"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().to_owned()),
    );
    assert_explained("check", &checks);
}

/// What of a text that is put together stands in it each time.
fn fixed(text: &str) -> String {
    let parts = text.split('{').enumerate().map(|(n, part)| match n {
        0 => part,
        _ => part.split_once('}').map_or("", |(_, rest)| rest),
    });
    let part = parts.max_by_key(|part| part.len()).unwrap();
    part.trim_matches([' ', ';', ':', ',']).to_owned()
}

#[test]
fn lines_of_the_log() {
    let explained = explained("line");
    // A canary's and a flag's reasons are put together elsewhere, from what the table of watched keys explains.
    let said: Vec<_> = ["warn!(", "error!(", "crew.warn("]
        .iter()
        .flat_map(|call| calls(call))
        .map(|text| fixed(&text))
        .filter(|text| !text.is_empty())
        .collect();
    assert!(said.len() > 45, "{said:#?}");
    let silent: Vec<_> = said
        .iter()
        .filter(|said| {
            let is = |line: &String| {
                let line = line.trim_end_matches(" ...");
                said.contains(line) || line.contains(said.as_str())
            };
            !explained.iter().any(is)
        })
        .collect();
    assert!(silent.is_empty(), "docs/OPERATIONS.md does not explain {silent:#?}");
    let sources = crates().replace("{what} failed", "sweep failed nudge failed");
    let sources = sources.replace("{SETTING}", "notify-keyspace-events").replace("{of}", "");
    for line in explained {
        assert!(sources.contains(line.trim_end_matches(" ...")), "nothing says {line:?}");
    }
}
