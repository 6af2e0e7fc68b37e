//! deploy/systemd: each unit starts what is there, with a grace that suffices.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Instant;

use overdue_tests::blocks::{root, text};
use overdue_tests::{Redis, eventually_blocking, http};

use crate::container::Container;
use crate::place::Place;

const FOLDER: &str = "deploy/systemd";

/// The settings of a unit by section and name; the last one counts.
fn unit(file: &str) -> BTreeMap<String, String> {
    let (mut section, mut settings) = (String::new(), BTreeMap::new());
    for line in text(&format!("{FOLDER}/{file}")).lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_owned();
        } else if let Some((name, value)) = line.split_once('=') {
            settings.insert(format!("{section}.{name}"), value.to_owned());
        }
    }
    settings
}

fn files() -> Vec<String> {
    let files = fs::read_dir(root().join(FOLDER)).unwrap();
    files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Runs the unit's command with `settings` where its own would be, until it is ready; then SIGTERM.
fn run(file: &str, instance: &str, settings: &str, port: u16) {
    let unit = unit(file);
    let redis = Redis::start();
    let mut place = Place::at(&redis);
    let addr = place.listen(port);
    let ours = place.folder().join("settings.toml");
    fs::write(
        &ours,
        format!("{settings}listen = \"0.0.0.0:{port}\"\n[redis]\nurl = \"redis://redis:6379/\"\n"),
    )
    .unwrap();
    let command = unit["Service.ExecStart"].replace("%i", instance);
    let mut command: Vec<_> = command.split(' ').map(str::to_owned).collect();
    assert_eq!(command[0], "/usr/local/bin/overdue");
    command[0] = "overdue".to_owned();
    let config = command.last().unwrap().clone();
    assert!(config.starts_with("/etc/overdue/"), "{config}");
    let mut process = Container { command, env: BTreeMap::new(), mounts: vec![(config, ours)] }.start(&place);
    eventually_blocking(&format!("{file} is ready"), || {
        process.assert_runs();
        match http::get(addr, "/readyz") {
            Ok(response) if response.status == 200 => Ok(()),
            other => Err((other, process.output())),
        }
    });
    let began = Instant::now();
    process.sigterm();
    assert_eq!(process.code(), 0, "{}", process.output());
    let grace: u64 = unit["Service.TimeoutStopSec"].trim_end_matches('s').parse().unwrap();
    assert!(grace >= 40 && began.elapsed().as_secs() < grace);
}

#[test]
fn the_unit_of_a_relay_runs() {
    run("overdue-relay.service", "", "[relay]\n", 9633);
}

#[test]
fn the_unit_of_a_consumer_runs_and_leaves_its_commands_to_it() {
    let consumer = "[[consumer]]\nqueue = \"orders\"\ngroup = \"billing\"\nexec = [\"true\"]\n[consume]\n";
    run("overdue-consume@.service", "orders", consumer, 9634);
    // Else SIGTERM would reach the commands at once, whose grace has just begun.
    assert_eq!(unit("overdue-consume@.service")["Service.KillMode"], "mixed");
}

#[test]
fn wrong_settings_are_not_tried_again_and_redis_away_for_ever() {
    for file in files() {
        let unit = unit(&file);
        assert_eq!(unit["Service.Restart"], "on-failure", "{file}");
        assert_eq!(unit["Service.RestartPreventExitStatus"], "2", "{file}");
        assert_eq!(unit["Unit.StartLimitIntervalSec"], "0", "{file}");
        assert!(!unit.contains_key("Service.User") && unit["Service.DynamicUser"] == "yes", "{file}");
    }
}

#[test]
fn man_pages_that_units_name_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let made = overdue_tests::Launch::new(["extras".into(), folder.path().as_os_str().to_owned()]).run();
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    for file in files() {
        let unit = unit(&file);
        let page = unit["Unit.Documentation"].strip_prefix("man:").unwrap();
        let page = page.replace('(', ".").replace(')', "");
        assert!(folder.path().join("man").join(&page).is_file(), "{file}: {page}");
    }
}

/// Where systemd is, it has the last word on its own files.
#[test]
fn systemd_knows_every_setting() {
    let folder = tempfile::tempdir().unwrap();
    for file in files() {
        let text = text(&format!("{FOLDER}/{file}")).replace("/usr/local/bin/overdue", "/bin/true");
        let path = folder.path().join(file.replace('@', "@x"));
        fs::write(&path, text).unwrap();
        let Ok(verified) = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output()
        else {
            return;
        };
        let said = String::from_utf8_lossy(&verified.stderr);
        let ours: Vec<_> = said.lines().filter(|line| line.contains(&*path.to_string_lossy())).collect();
        assert!(ours.is_empty(), "{ours:#?}");
    }
}
