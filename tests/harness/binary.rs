//! Where the built program `overdue` is, and the examples.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The program beside the running test: `target/<profile>/overdue`; or what `OVERDUE_BIN` names.
///
/// # Errors
/// It is missing, or older than a source it was built from. Cargo builds no program of another package for
/// a test, so without this check an old one would be tested.
pub fn find() -> Result<PathBuf, String> {
    if let Some(named) = env::var_os("OVERDUE_BIN") {
        return Ok(named.into());
    }
    find_beside(&this_test()?, "overdue", "cargo build -p overdue-cli")
}

/// An example of the client library beside the running test: `target/<profile>/examples/<name>`.
///
/// # Errors
/// As [`find`].
pub fn example(name: &str) -> Result<PathBuf, String> {
    let build = "cargo build -p overdue --examples --features consumer";
    find_beside(&this_test()?, &format!("examples/{name}"), build)
}

fn this_test() -> Result<PathBuf, String> {
    env::current_exe().map_err(|error| format!("where does this test run? {error}"))
}

/// What `build` builds at `name` in the folder of a test's profile.
fn find_beside(test: &Path, name: &str, build: &str) -> Result<PathBuf, String> {
    // target/<profile>/deps/<test>
    let folder = test.parent().and_then(Path::parent).ok_or("this test runs in no target folder")?;
    let binary = folder.join(name);
    let missing = |_| format!("{} is not built; run `{build}` first", binary.display());
    let built = modified(&binary).map_err(missing)?;
    let sources = fs::read_to_string(folder.join(format!("{name}.d"))).unwrap_or_default();
    let newer = |source: &PathBuf| modified(source).is_ok_and(|time| time > built);
    match source_paths(&sources).into_iter().find(newer) {
        Some(source) => {
            Err(format!("{} is older than {}; run `{build}` first", binary.display(), source.display()))
        }
        None => Ok(binary),
    }
}

fn modified(path: &Path) -> std::io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}

/// The paths behind the colon of cargo's dep-info file; a space in a path is written `\ `.
fn source_paths(dep_info: &str) -> Vec<PathBuf> {
    let Some((_, list)) = dep_info.trim_end().split_once(": ") else { return vec![] };
    list.replace("\\ ", "\0").split(' ').map(|path| path.replace('\0', " ").into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_or_old_is_not_tested() {
        let target = tempfile::tempdir().unwrap();
        let path = |name: &str| target.path().join(name);
        let test = path("deps/flow-0123");
        let find_beside = |test: &Path| find_beside(test, "overdue", "cargo build -p overdue-cli");
        let error = find_beside(&test).unwrap_err();
        assert!(error.contains("is not built; run `cargo build -p overdue-cli`"), "{error}");
        fs::write(path("overdue"), "").unwrap();
        assert_eq!(find_beside(&test).unwrap(), path("overdue"));
        let source = path("a source.rs");
        let old = SystemTime::now() - std::time::Duration::from_secs(9);
        fs::write(&source, "").unwrap();
        let escaped = source.display().to_string().replace(' ', "\\ ");
        fs::write(path("overdue.d"), format!("{}: /no/such.rs {escaped}\n", path("overdue").display()))
            .unwrap();
        fs::File::options().write(true).open(path("overdue")).unwrap().set_modified(old).unwrap();
        assert!(find_beside(&test).unwrap_err().contains("older than"));
        fs::File::options().write(true).open(&source).unwrap().set_modified(old).unwrap();
        assert!(find_beside(&test).is_ok());
    }
}
