//! Interpreters of other languages, with their Redis library.

use std::process::{Command, Stdio};

/// A Python that can import `redis`.
///
/// # Panics
/// There is none: the text says what to install.
#[must_use]
pub fn python() -> &'static str {
    // A python3 of one's own, first in PATH, does not see Debian's packages.
    find("Python", &["python3", "/usr/bin/python3"], ["-c", "import redis"], "python3-redis")
}

/// A PHP with the extension `redis`.
///
/// # Panics
/// As [`python`].
#[must_use]
pub fn php() -> &'static str {
    find("PHP", &["php"], ["-r", "exit(extension_loaded('redis') ? 0 : 1);"], "php-cli php-redis")
}

fn find(language: &str, candidates: &[&'static str], test: [&str; 2], package: &str) -> &'static str {
    let works = |program: &&&'static str| {
        let mut command = Command::new(program);
        command.args(test).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    candidates.iter().find(works).unwrap_or_else(|| {
        panic!(
            "{language} with its Redis library is missing: scripts/need-clients, or apt-get install {package}"
        )
    })
}
