//! `overdue config sample`: the settings file with everything in it, commented out.

use super::key::{Entry, Form};
use super::table::ALL;

const WIDTH: usize = 100;
const HEAD: &str = "\
# Settings of Overdue, for all its programs. Every line that begins with # and a name shows the default;
# take the # away to change it. Flags and OVERDUE_... environment variables stand above this file.
# Overdue reads the file that --config or OVERDUE_CONFIG names, and no other. Check it with
#   overdue config check --config FILE
";

/// The sample, ready to be written to a file. As it stands it changes nothing.
pub(crate) fn sample() -> String {
    let mut text = HEAD.to_owned();
    let mut current = "";
    for entry in ALL {
        let (section, name) = entry.section_and_name();
        if section != current {
            text += &format!("\n[{section}]\n");
            current = section;
        }
        text += &format!("\n{}#{name} = {}\n", comment(entry), toml_value(entry));
    }
    text
}

fn comment(entry: &Entry) -> String {
    let mut about = entry.help.to_owned();
    if !entry.values.is_empty() {
        about += &format!(" {}.", entry.values);
    }
    let flag = entry.flag.map(|flag| format!("--{}, ", flag.long)).unwrap_or_default();
    about += &format!(" ({flag}{})", entry.variable());
    wrap(&about)
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
        Form::Number => entry.default.to_owned(),
        Form::Text => format!("{:?}", entry.default),
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

    #[test]
    fn as_it_stands_it_sets_nothing() {
        let (given, errors) = read_settings("sample", &sample());
        assert!(given.is_empty() && errors.is_empty(), "{given:?} {errors:?}");
    }

    #[test]
    fn with_every_name_uncommented_it_says_the_defaults() {
        let is_setting = |line: &str| line.starts_with('#') && !line.starts_with("# ");
        let lines = sample();
        let lines = lines.lines().map(|line| if is_setting(line) { &line[1..] } else { line });
        let (given, errors) = read_settings("sample", &lines.collect::<Vec<_>>().join("\n"));
        assert_eq!(errors, Vec::<String>::new());
        let said: Vec<_> = given.iter().map(|given| (given.entry.path, given.text.as_str())).collect();
        let expected: Vec<_> = ALL.iter().map(|entry| (entry.path, entry.default)).collect();
        assert_eq!(said, expected);
    }

    #[test]
    fn lines_fit_a_terminal() {
        assert!(sample().lines().all(|line| line.len() <= 110), "{}", sample());
    }
}
