//! The sources of our crates, as text: what they say to people.

use std::fs;
use std::path::{Path, PathBuf};

use super::blocks::root;

fn folder() -> PathBuf {
    root().join("crates")
}

/// One file of them.
pub(super) fn source(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// All of a folder's sources, with the strings that go on in the next line put together.
pub(super) fn sources(folder: &Path) -> String {
    read(folder, false)
}

pub(super) fn crates() -> String {
    sources(&folder())
}

/// The same of one folder, without what only tests say.
pub(super) fn without_tests(name: &str) -> String {
    read(&folder().join(name), true)
}

fn read(folder: &Path, cut: bool) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = cut && ["tests", "tests.rs", "examples"].iter().any(|name| path.ends_with(name));
        if path.is_dir() && !is_test {
            all += &read(&path, cut);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
            let text = fs::read_to_string(&path).unwrap();
            all += if cut { text.split("#[cfg(test)]\nmod ").next().unwrap() } else { &text };
        }
    }
    let lines = all.split("\\\n").enumerate();
    lines.map(|(n, part)| if n == 0 { part } else { part.trim_start() }).collect()
}

/// The names of an enum's variants.
pub(super) fn variants(file: &str, name: &str) -> Vec<String> {
    let source = source(file);
    let body = source.split(&format!("{name} {{\n")).nth(1).unwrap().split("\n}\n").next().unwrap();
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let names = lines.filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    names.map(|line| line.split([' ', ',', '(']).next().unwrap().to_owned()).collect()
}

/// The texts of all calls of `call` in our crates: of each its last string.
pub(super) fn calls(call: &str) -> Vec<String> {
    let sources = without_tests("");
    let texts = sources.split(call).skip(1).map(strings);
    // What `crew.warn` is given first is for itself.
    let names = usize::from(call.starts_with("crew."));
    texts.filter_map(|mut texts| texts.split_off(names.min(texts.len())).pop()).collect()
}

/// The strings up to the closing parenthesis of a call whose opening one stands before `rest`.
fn strings(rest: &str) -> Vec<String> {
    let (mut found, mut depth, mut rest) = (vec![], 1, rest);
    while depth > 0 {
        let Some(at) = rest.find(['"', '(', ')']) else { break };
        let (what, after) = (rest.as_bytes()[at], &rest[at + 1..]);
        rest = after;
        match what {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {
                let mut end = 0;
                while !after[end..].starts_with('"') {
                    end += if after[end..].starts_with('\\') {
                        2
                    } else {
                        after[end..].chars().next().map_or(1, char::len_utf8)
                    };
                }
                found.push(after[..end].replace("\\\"", "\""));
                rest = &after[end + 1..];
            }
        }
    }
    found
}

#[test]
fn the_text_of_a_call_is_found_whatever_stands_around_it() {
    assert_eq!(
        strings("%a, b = f(\"x\"), \"say {c} \\\"so\\\"\", d()); warn!(\"other\")"),
        ["x", "say {c} \"so\""]
    );
}
