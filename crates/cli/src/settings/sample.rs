//! `overdue config sample`: the settings file with everything in it, commented out.

use super::key::{Entry, Form};
use super::table::{ALL, WATCH};
use super::watch::table::KEYS;

const WIDTH: usize = 100;
const HEAD: &str = "\
# Settings of Overdue, for all its programs. Every line that begins with # and a name shows the default;
# take the # away to change it. Flags and OVERDUE_... environment variables stand above this file.
# Overdue reads the file that --config or OVERDUE_CONFIG names, and no other. Check it with
#   overdue config check --config FILE
";

/// Stands before the one rule.
const RULE: &str = "Below is one rule with all it can say; only pattern and queue it must.";

/// The sample, ready to be written to a file. As it stands it changes nothing.
pub(crate) fn sample() -> String {
    let mut text = HEAD.to_owned();
    let mut current = "";
    for entry in ALL.iter().filter(|entry| entry.form != Form::Rules) {
        let (section, name) = entry.section_and_name();
        if section != current {
            text += &format!("\n[{section}]\n");
            current = section;
        }
        text += &format!("\n{}#{name} = {}\n", comment(entry), toml_value(entry));
    }
    text + &rule()
}

/// The block of one watch rule.
fn rule() -> String {
    let mut text = format!("\n{}{}#[[{}]]\n", comment(&WATCH.entry), wrap(RULE), WATCH.entry.path);
    for entry in KEYS {
        let (_, name) = entry.section_and_name();
        text += &format!("\n{}#{name} = {}\n", wrap(&about(entry)), toml_value(entry));
    }
    text
}

fn comment(entry: &Entry) -> String {
    let flag = entry.flag.map(|flag| format!("--{}, ", flag.long)).unwrap_or_default();
    wrap(&format!("{} ({flag}{})", about(entry), entry.variable()))
}

fn about(entry: &Entry) -> String {
    let values = if entry.values.is_empty() { String::new() } else { format!(" {}.", entry.values) };
    format!("{}{values}", entry.help)
}

fn wrap(text: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("it starts with one line");
        if line.len() + 1 + word.len() > WIDTH {
            lines.push(format!("# {word}"));
        } else {
            *line += &format!(" {word}");
        }
    }
    lines.join("\n") + "\n"
}

fn toml_value(entry: &Entry) -> String {
    match entry.form {
        Form::Number | Form::Patterns => entry.sample().to_owned(),
        Form::Text => format!("{:?}", entry.sample()),
        Form::Rules => "[]".to_owned(),
        Form::List => {
            let items = entry.default.split(',').filter(|item| !item.is_empty());
            format!("[{}]", items.map(|item| format!("{item:?}")).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::file::read_settings;
    use crate::settings::layers::Given;

    #[test]
    fn as_it_stands_it_sets_nothing() {
        let said = read_settings("sample", &sample());
        assert!(said.given.is_empty() && said.rules.is_empty() && said.errors.is_empty(), "{said:?}");
    }

    #[test]
    fn with_every_name_uncommented_it_says_the_defaults() {
        let is_setting = |line: &str| line.starts_with('#') && !line.starts_with("# ");
        let lines = sample();
        let lines = lines.lines().map(|line| if is_setting(line) { &line[1..] } else { line });
        let said = read_settings("sample", &lines.collect::<Vec<_>>().join("\n"));
        assert_eq!(said.errors, Vec::<String>::new());
        let defaults = ALL.iter().filter(|entry| entry.form != Form::Rules);
        let defaults: Vec<_> = defaults.map(|entry| (entry.path, entry.default)).collect();
        assert_eq!(texts(&said.given), defaults);
        let samples: Vec<_> = KEYS.iter().map(|entry| (entry.path, entry.sample())).collect();
        assert_eq!(said.rules.iter().map(|rule| texts(&rule.given)).collect::<Vec<_>>(), [samples]);
    }

    fn texts(given: &[Given]) -> Vec<(&str, &str)> {
        given.iter().map(|given| (given.entry.path, given.text.as_str())).collect()
    }

    #[test]
    fn lines_fit_a_terminal() {
        assert!(sample().lines().all(|line| line.len() <= 110), "{}", sample());
    }
}
