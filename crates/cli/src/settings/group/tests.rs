use std::time::Duration;

use overdue_protocol::call::From;
use overdue_protocol::{GroupName, QueueName};

use super::*;
use crate::settings::tests::{file, layers, wrong};
use crate::settings::{Settings, show};

const MINIMAL: &str = "[[group]]\nqueue = \"orders\"\nname = \"mail\"\n";

fn rule(queue: &str, name: &str) -> GroupRule {
    GroupRule {
        queue: QueueName::new(queue).unwrap(),
        name: GroupName::new(name).unwrap(),
        from: From::Oldest,
        lease: Duration::from_secs(30),
        attempts: 20,
        retry_wait: Duration::from_secs(1),
        retry_wait_max: Duration::from_secs(3600),
    }
}

#[test]
fn a_group_needs_a_queue_and_a_name_and_has_defaults_for_the_rest() {
    let everything = "[[group]]\nqueue = \"orders\"\nname = \"audit\"\nfrom = \"new\"\nlease = \"2h\"\nattempts = 3\n\
                      retry_wait = \"2s\"\nretry_wait_max = \"1m\"\n";
    let (_dir, path) = file(&format!("[consume]\nlease = \"9s\"\nattempts = 9\n{MINIMAL}{everything}"));
    let groups = Settings::resolve(layers(Some(path), vec![], &[])).unwrap().groups;
    let full = GroupRule {
        from: From::New,
        lease: Duration::from_secs(7200),
        attempts: 3,
        retry_wait: Duration::from_secs(2),
        retry_wait_max: Duration::from_secs(60),
        ..rule("orders", "audit")
    };
    assert_eq!(groups, [rule("orders", "mail"), full], "what [consume] says is not for plain groups");
}

#[test]
fn what_is_wrong_with_a_group_has_its_place() {
    assert_eq!(
        wrong(&format!(
            "{MINIMAL}laese = \"1s\"\nlease = \"500ms\"\nattempts = \"x\"\nfrom = \"latest\"\n[[group]]\n"
        )),
        [
            "-:4:1: there is no setting group.laese; the nearest name is group.lease",
            "-:7:8: group.from: invalid value \"latest\": not one of oldest, new",
            "-:5:9: group.lease: invalid value \"500ms\": too short: at least 1s",
            "-:6:12: group.attempts: invalid value \"x\": not a whole number from 1 to 1000",
            "-:8:1: group.queue is missing: write it like queue = \"orders\"",
            "-:8:1: group.name is missing: write it like name = \"billing\"",
        ]
    );
    assert_eq!(
        wrong(&format!("{MINIMAL}retry_wait = \"2m\"\nretry_wait_max = \"1m\"\n")),
        ["-:4:14: group.retry_wait is longer than group.retry_wait_max"]
    );
    assert_eq!(
        wrong("[group]\nqueue = \"q\"\n"),
        ["-:1:2: group is a list: write [[group]] on a line of its own for each"]
    );
    assert_eq!(wrong("[[gruop]]\n"), ["-:1:3: there is no section [gruop]; the nearest name is [[group]]"]);
}

#[test]
fn a_group_is_declared_once_and_never_has_a_consumer_of_ours_too() {
    assert_eq!(
        wrong(&format!("{MINIMAL}{MINIMAL}[[group]]\nqueue = \"other\"\nname = \"mail\"\n")),
        ["-:4:1: group mail of queue orders is declared already: keep one"]
    );
    let ours = "[[consumer]]\nqueue = \"orders\"\ngroup = \"mail\"\nprint = true\n";
    assert_eq!(
        wrong(&format!("{ours}{MINIMAL}")),
        [
            "-:5:1: group mail of queue orders has a [[consumer]] too, which needs no [[group]]: keep one of them"
        ]
    );
    let many: String = (0..=MOST).map(|n| format!("[[group]]\nqueue = \"q\"\nname = \"g{n}\"\n")).collect();
    assert_eq!(wrong(&many), ["-:769:1: more than 256 groups: let consumers share some"]);
}

#[test]
fn groups_are_shown_with_what_they_say_and_where() {
    let (_dir, path) = file(&format!("{MINIMAL}lease = \"5m\"\n"));
    let given = layers(Some(path.clone()), vec![], &[]);
    let rows = show::effective(&given, &[]).into_iter().filter(|row| row.name.starts_with("group"));
    let rows: Vec<_> = rows.map(|row| format!("{} {} {}", row.name, row.value, row.from)).collect();
    let place = path.display();
    let expected = [
        format!("group.orders.mail.queue orders {place}:2:9"),
        format!("group.orders.mail.name mail {place}:3:8"),
        "group.orders.mail.from oldest default".to_owned(),
        format!("group.orders.mail.lease 5m {place}:4:9"),
        "group.orders.mail.attempts 20 default".to_owned(),
        "group.orders.mail.retry_wait 1s default".to_owned(),
        "group.orders.mail.retry_wait_max 1h default".to_owned(),
    ];
    assert_eq!(rows, expected);
}
