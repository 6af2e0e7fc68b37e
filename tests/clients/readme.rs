//! The examples of clients/README.md, as they stand there but for the port.

use std::fs;
use std::process::Command;

use overdue_tests::{Redis, assert_balanced};

use crate::language::{Language, root};

#[test]
fn each_example_moves_its_timer_and_cancels_it() {
    let readme = fs::read_to_string(root().join("clients/README.md")).unwrap();
    for (language, fence, head, yes) in
        [(Language::Python, "```python\n", "", "True"), (Language::Php, "```php\n", "<?php ", "1")]
    {
        let redis = Redis::start();
        let block = readme.split(fence).nth(1).unwrap().split("```").next().unwrap();
        assert!(block.contains("6379"), "{block}");
        let folder = tempfile::tempdir().unwrap();
        for file in fs::read_dir(language.folder()).unwrap().map(|entry| entry.unwrap()) {
            fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
        let script = folder.path().join("example");
        fs::write(&script, format!("{head}{}", block.replace("6379", &redis.port().to_string()))).unwrap();
        let mut command = Command::new(language.interpreter());
        let ran = command.arg(&script).current_dir(folder.path()).output().unwrap();
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success(), "{language:?}: {ran:?}");
        let (later, was_there) = text.trim_end().split_once(' ').unwrap();
        // 900 s, and the time between both calls.
        assert!((900_000..930_000).contains(&later.parse::<u64>().unwrap()), "{language:?}: {text}");
        assert_eq!(was_there, yes);
        assert_eq!(redis.call(&["HGET", "overdue:{orders:0}:tally", "cancelled"]).text(), "1");
        assert_balanced(&redis, "orders", 1);
    }
}
