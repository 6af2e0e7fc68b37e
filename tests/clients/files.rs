//! What a user copies: short clients, and beside them the very scripts of the protocol.

use std::fs;

use overdue_protocol::Script;
use overdue_protocol::script::{CANCEL, CLIENT, SCHEDULE};

use crate::language::Language;

#[test]
fn the_scripts_beside_each_client_are_those_of_the_protocol() {
    let scripts: Vec<&Script> = [&SCHEDULE, &CANCEL].into_iter().chain(&CLIENT).collect();
    let mut written = vec![];
    for language in Language::ALL {
        for script in &scripts {
            let name = script.name.rsplit('/').next().unwrap();
            let path = language.folder().join(format!("{name}.lua"));
            if fs::read_to_string(&path).ok().as_deref() != Some(script.text) {
                fs::write(&path, script.text).unwrap();
                written.push(path);
            }
        }
        let lua = fs::read_dir(language.folder()).unwrap().map(|entry| entry.unwrap().path());
        let lua: Vec<_> = lua.filter(|path| path.extension().is_some_and(|kind| kind == "lua")).collect();
        assert_eq!(lua.len(), scripts.len(), "{lua:?}");
    }
    assert!(written.is_empty(), "these were out of date, and are now written anew from lua/: {written:?}");
}

#[test]
fn each_client_is_short_enough_to_be_read_before_it_is_copied() {
    for language in Language::ALL {
        let lines = fs::read_to_string(language.file()).unwrap().lines().count();
        assert!(lines < 150, "{language:?}: {lines} lines");
    }
}
