//! scripts/dist: what it packs is enough for a new user who has nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use overdue_tests::blocks::{commands, root, text};
use overdue_tests::{Redis, Terminal, binary, readme};
use tempfile::TempDir;

/// What the lines of the README call, apart from overdue and redis-cli.
const PROGRAMS: [&str; 2] = ["sh", "cat"];

/// Packs the built program and unpacks it into an empty folder.
fn unpacked() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let program = fs::canonicalize(binary::find().unwrap_or_else(|error| panic!("{error}"))).unwrap();
    let packed = Command::new(root().join("scripts/dist"))
        .arg(folder.path().join("dist"))
        .env("OVERDUE_BIN", program)
        .output()
        .unwrap();
    assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    let tarball = PathBuf::from(String::from_utf8(packed.stdout).unwrap().trim());
    let name = tarball.file_name().unwrap().to_string_lossy().into_owned();
    assert!(tarball.with_file_name(format!("{name}.sha256")).is_file());
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let status = Command::new("tar").arg("-xzf").arg(&tarball).arg("-C").arg(&empty).status().unwrap();
    assert!(status.success());
    let inside = empty.join(name.trim_end_matches(".tar.gz"));
    assert!(inside.is_dir(), "{}", inside.display());
    (folder, inside)
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn the_first_five_minutes_of_the_readme_work_from_the_tarball_alone() {
    let (_folder, inside) = unpacked();
    let redis = Redis::start();
    let terminal = Terminal::with_only(&redis, &inside.join("bin/overdue"), &PROGRAMS);
    assert_ne!(terminal.run("cargo --version 2>/dev/null").code(), 0, "cargo is in PATH");
    readme::play(&fs::read_to_string(inside.join("README.md")).unwrap(), &terminal);
}

#[test]
fn the_tarball_holds_all_that_belongs_to_the_program() {
    let (_folder, inside) = unpacked();
    assert_eq!(names(&inside.join("completions")), ["_overdue", "overdue.bash", "overdue.fish"]);
    let pages = names(&inside.join("man"));
    for page in ["overdue.1", "overdue-relay.1", "overdue-consume.1", "overdue-queues-create.1"] {
        assert!(pages.iter().any(|name| name == page), "{page}: {pages:?}");
    }
    assert!(!pages.iter().any(|name| name.contains("extras")), "{pages:?}");
    let bash = Command::new("bash").arg("-n").arg(inside.join("completions/overdue.bash")).status().unwrap();
    assert!(bash.success());
    let sample = inside.join("overdue.sample.toml").into_os_string();
    let checked =
        overdue_tests::Launch::new(["config".into(), "check".into(), "--config".into(), sample]).run();
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    assert!(inside.join("deploy/systemd/overdue-relay.service").is_file());
    assert!(inside.join("dashboards/alerts.yml").is_file());
    let readme = fs::read_to_string(inside.join("README.md")).unwrap();
    let links = readme.split("](").skip(1).map(|rest| rest.split([')', '#']).next().unwrap());
    let broken: Vec<_> = links.filter(|link| !link.contains("://") && !inside.join(link).exists()).collect();
    assert!(broken.is_empty(), "{broken:?}");
    install(&inside);
}

/// Installs it as docs/OPERATIONS.md says, into a folder in the place of `/`: each unit finds its program and its settings.
fn install(inside: &Path) {
    let root = tempfile::tempdir().unwrap();
    let here = |path: &str| root.path().join(path.trim_start_matches('/'));
    for folder in ["/usr/local/bin", "/etc/systemd/system"] {
        fs::create_dir_all(here(folder)).unwrap();
    }
    let operations = text("docs/OPERATIONS.md");
    let commands = commands(&operations);
    let lines: Vec<_> = commands.iter().filter_map(|line| line.strip_prefix("sudo install ")).collect();
    assert!(lines.len() >= 3, "{lines:?}");
    for line in lines {
        let (options, to) = line.rsplit_once(' ').unwrap();
        let line = format!("install {options} {}", here(to).display());
        let status = Command::new("sh").args(["-c", &line]).current_dir(inside).status().unwrap();
        assert!(status.success(), "{line}");
    }
    for unit in ["overdue-relay.service", "overdue-consume@.service"] {
        let unit = fs::read_to_string(here("/etc/systemd/system").join(unit)).unwrap();
        let command =
            unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap().replace("%i", "orders");
        assert!(here(command.split(' ').next().unwrap()).is_file(), "{command}");
        assert!(here(command.rsplit(' ').next().unwrap()).is_file(), "{command}");
    }
}
