//! `overdue config sample`: the settings file with everything in it, commented out.

use super::key::{Entry, Form};
use super::list::{LISTS, List};
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
    for entry in ALL.iter().filter(|entry| entry.form != Form::Rules) {
        let (section, name) = entry.section_and_name();
        if section != current {
            text += &format!("\n[{section}]\n");
            current = section;
        }
        text += &format!("\n{}#{name} = {}\n", comment(entry), toml_value(entry));
    }
    LISTS.into_iter().fold(text, |text, list| text + &one_of(list))
}

/// The block of one table of a list.
fn one_of(list: &List) -> String {
    let setting = ALL.iter().copied().find(|entry| entry.path == list.name);
    let setting = setting.map(comment).unwrap_or_default();
    let mut text = format!("\n{setting}{}#[[{}]]\n", wrap(list.about), list.name);
    for entry in list.keys {
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
        Form::Number | Form::Strings | Form::Switch => entry.sample().to_owned(),
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
        assert!(said.given.is_empty() && said.lists.is_empty() && said.errors.is_empty(), "{said:?}");
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
        for list in LISTS {
            let tight = |entry: &Entry| entry.sample().replace("\", \"", "\",\"");
            let samples: Vec<_> = list.keys.iter().map(|entry| (entry.path, tight(entry))).collect();
            let [said] = &said.lists[list.name][..] else { panic!("one of each: {said:?}") };
            let said = texts(&said.given).into_iter().map(|(path, text)| (path, text.to_owned()));
            assert_eq!(said.collect::<Vec<_>>(), samples);
        }
    }

    fn texts(given: &[Given]) -> Vec<(&str, &str)> {
        given.iter().map(|given| (given.entry.path, given.text.as_str())).collect()
    }

    #[test]
    fn lines_fit_a_terminal() {
        assert!(sample().lines().all(|line| line.len() <= 110), "{}", sample());
    }
}
