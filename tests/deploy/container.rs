//! A container, or a unit: what it runs, with which variables and files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use overdue_tests::terminal::Running;

use crate::place::Place;

/// One container.
#[derive(Clone, Debug, Default)]
pub(super) struct Container {
    /// The program and its arguments, those of the entry point too.
    pub(super) command: Vec<String>,
    /// Its variables.
    pub(super) env: BTreeMap<String, String>,
    /// Files and folders of ours: where the container has them, and where they are.
    pub(super) mounts: Vec<(String, PathBuf)>,
}

impl Container {
    /// Starts it as a process at `place`.
    pub(super) fn start(&self, place: &Place) -> Running {
        self.exec(&self.command, place)
    }

    /// Runs another command as it would run inside.
    pub(super) fn exec(&self, command: &[String], place: &Place) -> Running {
        let mut words = vec!["env".to_owned(), "-i".to_owned(), r#"PATH="$PATH""#.to_owned()];
        // Its own variables and no others, but for the colours that are no matter of the configuration.
        words.push("NO_COLOR=1".to_owned());
        words.extend(
            self.env.iter().map(|(name, value)| quote(&format!("{name}={}", self.here(value, place)))),
        );
        // Init programs of images; they start what follows.
        let inits: &[&str] = &["/sbin/tini", "--"];
        let command = command.iter().skip_while(|word| inits.contains(&word.as_str()));
        words.extend(command.map(|word| quote(&self.here(word, place))));
        place.terminal.run(&words.join(" "))
    }

    /// A text of its configuration as it must be here: addresses and paths are replaced.
    fn here(&self, text: &str, place: &Place) -> String {
        let mut text = place.replace(text);
        for (inside, source) in &self.mounts {
            if text.contains(inside.as_str()) {
                text = text.replace(inside.as_str(), &place.bring(source).display().to_string());
            }
        }
        text
    }
}

/// For a shell, whatever is in it.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
