//! Can the command be run at all? Asked once, at the start: later it counts as out of reach.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Looks the command up as the system will.
///
/// # Errors
/// It can't be run: a sentence with why, and what to do.
pub(crate) fn check(command: &[OsString]) -> Result<(), String> {
    let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
    look_up(program, std::env::var_os("PATH").as_deref())
        .map_err(|why| format!("cannot run {}: {why}", program.display()))
}

fn look_up(command: &OsStr, path: Option<&OsStr>) -> Result<(), String> {
    if command.as_bytes().contains(&b'/') {
        return runnable(Path::new(command));
    }
    let folders = path.map(|path| std::env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
    let found: Vec<_> = folders.iter().map(|folder| runnable(&folder.join(command))).collect();
    if command.is_empty() || found.iter().all(|found| found == &Err(absent())) {
        return Err("there is no such command in PATH; write the whole path, or correct PATH".to_owned());
    }
    // The system takes the first that it may run.
    found.into_iter().find(|found| found != &Err(absent())).unwrap_or(Ok(()))
}

fn absent() -> String {
    "there is no such file".to_owned()
}

fn runnable(file: &Path) -> Result<(), String> {
    let data = file.metadata().map_err(|_| absent())?;
    if data.is_dir() {
        return Err(format!("{} is a folder", file.display()));
    }
    if data.permissions().mode() & 0o111 == 0 {
        return Err(format!("{} is not executable; chmod +x it", file.display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_cannot_be_run_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, script) = (folder.path().join("plain"), folder.path().join("script"));
        fs::write(&plain, "").unwrap();
        fs::write(&script, "").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::join_paths([Path::new("/no/such"), folder.path()]).unwrap();
        let check = |command: &OsStr| look_up(command, Some(&path));
        assert_eq!(check(OsStr::new("script")), Ok(()));
        assert_eq!(check(script.as_os_str()), Ok(()));
        assert!(check(OsStr::new("plain")).unwrap_err().ends_with("is not executable; chmod +x it"));
        assert!(check(plain.as_os_str()).unwrap_err().ends_with("is not executable; chmod +x it"));
        assert!(check(folder.path().as_os_str()).unwrap_err().ends_with("is a folder"));
        assert_eq!(check(OsStr::new("./nothing")), Err(absent()));
        for command in ["nothing", ""] {
            assert!(check(OsStr::new(command)).unwrap_err().starts_with("there is no such command in PATH"));
        }
    }
}
