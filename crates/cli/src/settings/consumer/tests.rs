use super::*;
use crate::settings::tests::{file, layers, wrong};
use crate::settings::{Settings, show};

const MINIMAL: &str = "[[consumer]]\nqueue = \"orders\"\ngroup = \"mail\"\n";

fn consumers(text: &str) -> Vec<ConsumerRule> {
    let (_dir, path) = file(text);
    Settings::resolve(layers(Some(path), vec![], &[])).unwrap().consumers
}

#[test]
fn what_a_consumer_does_not_say_is_as_the_section_says() {
    let section = "[consume]\nlease = \"9s\"\nattempts = 9\nlimit = \"off\"\nconcurrency = 9\n";
    let full = "[[consumer]]\nqueue = \"orders\"\ngroup = \"audit\"\nfrom = \"new\"\nexec = [\"./x\", \"--json\", \"\"]\n\
                concurrency = 3\nlease = \"1m\"\nattempts = 2\nlimit = \"5s\"\nretry_wait = \"2s\"\nretry_wait_max = \"3s\"\n";
    let least = ConsumerRule {
        queue: QueueName::new("orders").unwrap(),
        group: GroupName::new("mail").unwrap(),
        from: From::Oldest,
        handler: HandlerRule::Print,
        concurrency: 9,
        lease: Duration::from_secs(9),
        attempts: 9,
        limit: None,
        retry_wait: Duration::from_secs(1),
        retry_wait_max: Duration::from_secs(3600),
    };
    let most = ConsumerRule {
        group: GroupName::new("audit").unwrap(),
        from: From::New,
        handler: HandlerRule::Exec(["./x", "--json", ""].map(OsString::from).to_vec()),
        concurrency: 3,
        lease: Duration::from_secs(60),
        attempts: 2,
        limit: Some(Duration::from_secs(5)),
        retry_wait: Duration::from_secs(2),
        retry_wait_max: Duration::from_secs(3),
        ..least.clone()
    };
    assert_eq!(consumers(&format!("{section}{MINIMAL}print = true\n{full}")), [least, most]);
}

#[test]
fn a_consumer_has_exactly_one_handler() {
    let handler = |said: &str| consumers(&format!("{MINIMAL}{said}\n")).remove(0).handler;
    let url = "https://example.com/t".to_owned();
    assert_eq!(
        handler("webhook = \"https://example.com/t\""),
        HandlerRule::Webhook { url: url.clone(), secret_file: None }
    );
    assert_eq!(
        handler("webhook = \"https://example.com/t\"\nwebhook_secret_file = \"/run/secret\""),
        HandlerRule::Webhook { url, secret_file: Some("/run/secret".into()) }
    );
    assert_eq!(handler("pipe = [\"php\"]\nprint = false"), HandlerRule::Pipe(vec!["php".into()]));
    let wrong = |said: &str| wrong(&format!("{MINIMAL}{said}\n"));
    let one_of = "write one of webhook, exec, pipe and print";
    for none in ["", "print = false"] {
        assert_eq!(wrong(none), [format!("-:1:1: a consumer without a handler: {one_of}")]);
    }
    assert_eq!(
        wrong("exec = [\"a\"]\nprint = true"),
        [format!("-:1:1: a consumer with two handlers: {one_of}")]
    );
    assert_eq!(
        wrong("print = true\nwebhook_secret_file = \"x\""),
        ["-:5:23: consumer.webhook_secret_file is set, but consumer.webhook is not"]
    );
}

#[test]
fn what_is_wrong_with_a_handler_says_what_to_write() {
    let wrong = |said: &str| wrong(&format!("{MINIMAL}{said}\n"));
    assert_eq!(
        wrong("webhook = \"http:/u:secret@h\""),
        [
            "-:4:11: consumer.webhook: invalid value \"***@h\": not a web address: write it like https://example.com/timeouts"
        ]
    );
    assert_eq!(
        wrong("exec = \"./x --json\""),
        [
            "-:4:8: consumer.exec: write a list of strings, such as [\"./release\", \"--quick\"]",
            "-:1:1: a consumer without a handler: write one of webhook, exec, pipe and print",
        ]
    );
    assert_eq!(
        wrong("pipe = []"),
        [
            "-:4:8: consumer.pipe: invalid value \"[]\": empty: write the command and its arguments, such as [\"./release\", \"--quick\"]"
        ]
    );
    assert_eq!(wrong("print = \"yes\"")[0], "-:4:9: consumer.print: write true or false, without quotes");
}

#[test]
fn two_consumers_never_share_a_group() {
    let print = format!("{MINIMAL}print = true\n");
    assert_eq!(
        wrong(&format!("{print}{print}")),
        [
            "-:5:1: group mail of queue orders has a consumer already: raise its concurrency, or name another group"
        ]
    );
    assert_eq!(
        wrong(&format!("[consume]\nretry_wait_max = \"1m\"\n{print}retry_wait = \"2m\"\n")),
        ["-:7:14: consumer.retry_wait, 2m, is longer than consumer.retry_wait_max, 1m"]
    );
    let many: String = (0..=MOST)
        .map(|n| format!("[[consumer]]\nqueue = \"q\"\ngroup = \"g{n}\"\nprint = true\n"))
        .collect();
    assert_eq!(wrong(&many), ["-:257:1: more than 64 consumers: run a second process"]);
}

#[test]
fn consumers_are_shown_without_passwords_and_with_where_a_value_stands() {
    let (_dir, path) = file(&format!("[consume]\nlease = \"9s\"\n{MINIMAL}webhook = \"https://u:p@h/t\"\n"));
    let given = layers(Some(path.clone()), vec![], &[]);
    let rows = show::effective(&given, &[]);
    let find = |name: &str| {
        let row = rows.iter().find(|row| row.name == format!("consumer.orders.mail.{name}")).unwrap();
        format!("{} {}", row.value, row.from.replace(path.to_str().unwrap(), "-"))
    };
    assert_eq!(find("webhook"), "https://u:***@h/*** -:6:11");
    assert_eq!(find("lease"), "9s -:2:9");
    assert_eq!(find("exec"), " default");
    assert_eq!(find("attempts"), "20 default");
}
