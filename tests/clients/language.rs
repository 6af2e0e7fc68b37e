//! The languages that have a client, and how they are run here.

use std::path::{Path, PathBuf};

use overdue_tests::interpreter;

/// A language with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// `clients/python`.
    Python,
    /// `clients/php`.
    Php,
}

impl Language {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::Python, Self::Php];

    /// The folder that a user copies.
    pub(crate) fn folder(self) -> PathBuf {
        let name = match self {
            Self::Python => "python",
            Self::Php => "php",
        };
        root().join("clients").join(name)
    }

    /// The client itself.
    pub(crate) fn file(self) -> PathBuf {
        self.folder().join(match self {
            Self::Python => "overdue.py",
            Self::Php => "Overdue.php",
        })
    }

    /// The program that obeys the lines it reads.
    pub(crate) fn driver(self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(match self {
            Self::Python => "driver.py",
            Self::Php => "driver.php",
        })
    }

    /// An interpreter with the library that the client needs.
    pub(crate) fn interpreter(self) -> &'static str {
        match self {
            Self::Python => interpreter::python(),
            Self::Php => interpreter::php(),
        }
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
