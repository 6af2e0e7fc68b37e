//! Dockerfile and .dockerignore.

use std::collections::BTreeSet;
use std::path::Path;

use overdue_tests::binary;
use overdue_tests::blocks::{root, text};
use serde_json::Value;

/// What the last stage says, and the stages before it.
pub(super) struct Image {
    /// Each instruction with the rest of its line, of all stages.
    instructions: Vec<(String, String)>,
    pub(super) entrypoint: Vec<String>,
}

impl Image {
    pub(super) fn read() -> Self {
        let file = text("Dockerfile");
        let lines: Vec<_> = file.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
        let joined = lines.join("\n").replace("\\\n", " ");
        let lines = joined.lines().filter(|line| !line.trim().is_empty());
        let split =
            |line: &str| line.trim().split_once(' ').map(|(a, b)| (a.to_owned(), b.trim().to_owned()));
        let instructions: Vec<_> = lines.map(|line| split(line).unwrap()).collect();
        let entrypoint = words(last(&instructions, "ENTRYPOINT"));
        Self { instructions, entrypoint }
    }

    fn last(&self, name: &str) -> &str {
        last(&self.instructions, name)
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.instructions.iter().filter(move |(its, _)| its == name).map(|(_, rest)| rest.as_str())
    }
}

fn last<'a>(instructions: &'a [(String, String)], name: &str) -> &'a str {
    let found = instructions.iter().rev().find(|(its, _)| its == name);
    &found.unwrap_or_else(|| panic!("no {name}")).1
}

fn words(list: &str) -> Vec<String> {
    serde_json::from_str(list).unwrap_or_else(|error| panic!("{list}: {error}"))
}

/// Whether the build finds this path of ours: the last line of .dockerignore that matches it has the say.
fn is_sent(path: &str) -> bool {
    let file = text(".dockerignore");
    let lines = file.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.fold(true, |sent, line| {
        let (pattern, keeps) = line.strip_prefix('!').map_or((line, false), |pattern| (pattern, true));
        let of_it = pattern == "*" || path == pattern || path.starts_with(&format!("{pattern}/"));
        if of_it { keeps } else { sent }
    })
}

#[test]
fn all_that_the_program_is_built_from_reaches_the_build() {
    assert!(!is_sent("target/debug/overdue") && !is_sent(".git/HEAD") && is_sent("crates/cli/src/main.rs"));
    // cargo's own list, beside the program.
    let program = binary::find().unwrap_or_else(|error| panic!("{error}"));
    let listed = std::fs::read_to_string(program.with_extension("d"));
    let root = root().canonicalize().unwrap();
    let sources = listed.unwrap_or_default();
    let ours = sources.split_whitespace().filter_map(|path| Path::new(path).strip_prefix(&root).ok());
    let mut ours: BTreeSet<_> = ours.map(|path| path.display().to_string()).collect();
    ours.retain(|path| !path.starts_with("target/"));
    assert!(ours.len() > 100 || std::env::var_os("OVERDUE_BIN").is_some(), "{}", ours.len());
    ours.extend(["Cargo.toml", "Cargo.lock", "tests/Cargo.toml", "lua/due.lua"].map(str::to_owned));
    let missing: Vec<_> = ours.iter().filter(|path| !is_sent(path)).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_build_makes_the_program_with_a_compiler_that_is_new_enough() {
    let image = Image::read();
    let build = image.all("RUN").find(|run| run.contains("cargo build")).unwrap();
    for part in ["--release", "--locked", "-p overdue-cli", "target/release/overdue /overdue"] {
        assert!(build.contains(part), "{part}: {build}");
    }
    assert!(text("crates/cli/Cargo.toml").contains("name = \"overdue-cli\""));
    let cargo = text("Cargo.toml");
    let least = cargo.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    let minor = |version: &str| version.trim_matches('"').split('.').nth(1).unwrap().parse::<u32>().unwrap();
    let used = image.all("ARG").find_map(|arg| arg.strip_prefix("RUST=")).unwrap();
    assert!(minor(used) >= minor(least), "{used} is older than {least}");
}

#[test]
fn the_image_holds_what_it_starts_and_runs_without_rights() {
    let image = Image::read();
    let stages: Vec<_> = image.all("FROM").collect();
    assert_eq!(stages.len(), 2, "{stages:?}");
    let name = stages[0].split(" AS ").nth(1).unwrap();
    assert_eq!(image.last("COPY"), format!("--from={name} /overdue /usr/local/bin/overdue"));
    assert_eq!(image.entrypoint, ["/sbin/tini", "--", "overdue"]);
    let install = image.last("RUN");
    assert!(install.contains(" tini") && install.contains("ca-certificates"), "{install}");
    let user = image.last("USER");
    assert!(user.split(':').all(|id| id.parse::<u32>().is_ok_and(|id| id >= 1000)), "{user}");
    assert!(install.contains(&format!("-u {}", user.split(':').next().unwrap())), "{install}");
}

#[test]
fn the_ports_of_the_image_are_those_of_the_program() {
    let sample = overdue_tests::Launch::new(["config", "sample"]).run().stdout;
    let ports =
        sample.lines().filter_map(|line| line.strip_prefix("#listen = \"127.0.0.1:")?.strip_suffix('"'));
    assert_eq!(ports.collect::<Vec<_>>(), Image::read().last("EXPOSE").split(' ').collect::<Vec<_>>());
    let run = overdue_tests::Launch::new(words(Image::read().last("CMD"))).run();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn kubernetes_runs_this_version_as_the_user_of_the_image() {
    let user: Value = Image::read().last("USER").split(':').next().unwrap().parse::<u32>().unwrap().into();
    for pod in crate::kubernetes::pods() {
        assert_eq!(pod["securityContext"]["runAsUser"], user);
        assert_eq!(pod["containers"][0]["image"], format!("overdue:{}", env!("CARGO_PKG_VERSION")));
    }
}
