//! Can the command be run at all? Asked once, at the start: later a failure is a retry.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Looks the command up as the system will.
///
/// # Errors
/// Why it can't be run, and what to do.
pub(super) fn check(command: &OsStr, path: Option<&OsStr>) -> Result<(), String> {
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
        let check = |command: &OsStr| super::check(command, Some(&path));
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
