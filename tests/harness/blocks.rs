//! The code blocks of our Markdown files.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// One of our files.
///
/// # Panics
/// It can't be read.
#[must_use]
pub fn text(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// README, CONTRIBUTING and all of docs/, by their names.
///
/// # Panics
/// There is no folder `docs`.
#[must_use]
pub fn files() -> Vec<String> {
    let docs = fs::read_dir(root().join("docs")).expect("docs/ is there");
    let docs =
        docs.map(|file| format!("docs/{}", file.expect("docs/ can be read").file_name().to_string_lossy()));
    let mut files: Vec<_> = docs.filter(|name| name.ends_with(".md")).collect();
    files.extend(["README.md", "CONTRIBUTING.md"].map(str::to_owned));
    files
}

/// The blocks that begin with three backticks and `language`.
///
/// # Panics
/// One is not closed.
#[must_use]
pub fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut blocks = vec![];
    let mut inside: Option<(String, String)> = None;
    for line in text.lines() {
        inside = match (inside, line.strip_prefix("```")) {
            (None, Some(language)) => Some((language.to_owned(), String::new())),
            (None, None) => None,
            (Some((of, block)), Some(_)) => {
                if of == language {
                    blocks.push(block);
                }
                None
            }
            (Some((of, block)), None) => Some((of, format!("{block}{line}\n"))),
        };
    }
    assert!(inside.is_none(), "a block is not closed");
    blocks
}

/// The lines of all `sh` blocks that run something: each a command.
///
/// # Panics
/// As [`blocks`].
#[must_use]
pub fn commands(text: &str) -> Vec<String> {
    let blocks = blocks(text, "sh");
    let lines = blocks.iter().flat_map(|block| block.lines());
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_told_apart_by_their_language() {
        let text = "a\n```sh\n# why\none\n\n```\n```toml\nkey = 1\n```\nb\n```sh\ntwo # why\n```\n";
        assert_eq!(commands(text), ["one", "two # why"]);
        assert_eq!(blocks(text, "toml"), ["key = 1\n"]);
    }
}
