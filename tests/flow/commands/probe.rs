//! `overdue probe`: what a health check of a container relies on.

use overdue_sandbox::free_port;
use overdue_tests::{Launch, Redis, eventually_blocking};

#[test]
fn a_health_check_says_ready_unready_alive_and_away() {
    let redis = Redis::start();
    let port = free_port();
    // As in a container: it listens everywhere.
    let (listen, asked) = (format!("0.0.0.0:{port}"), format!("http://127.0.0.1:{port}/readyz"));
    let probe = |args: &[&str]| {
        let args = ["probe"].iter().chain(args).copied();
        Launch::new(args).env("OVERDUE_RELAY_LISTEN", &listen).run()
    };
    let away = probe(&["relay"]);
    assert_eq!(away.code, Some(4));
    assert!(away.stderr.contains(&format!("no answer from {asked}")), "{}", away.stderr);

    let relay = Launch::new(["relay", "--redis", &redis.url(), "--listen", &listen]).start();
    eventually_blocking("the relay is ready", || {
        let ready = probe(&["relay"]);
        if ready.code == Some(0) { Ok(()) } else { Err((ready, relay.exited())) }
    });
    let json = probe(&["relay", "--json"]).stdout;
    assert!(json.starts_with(r#"{"status":200,"body":""#), "{json}");

    redis.sigstop();
    let unready = eventually_blocking("the relay is not ready", || {
        let probe = probe(&["relay"]);
        if probe.code == Some(4) { Ok(probe) } else { Err(probe) }
    });
    assert!(unready.stderr.contains(&format!("{asked} answers 503")), "{}", unready.stderr);
    assert!(!unready.stdout.trim().is_empty());
    assert_eq!(probe(&["relay", "--live"]).code, Some(0));
    redis.sigcont();
}

#[test]
fn a_process_without_a_port_is_not_asked() {
    for listen in ["off", "127.0.0.1:0"] {
        let probe = Launch::new(["probe", "consume"]).env("OVERDUE_CONSUME_LISTEN", listen).run();
        assert_eq!(probe.code, Some(2), "{}", probe.stderr);
        assert!(probe.stderr.contains("consume.listen names no port to ask"), "{}", probe.stderr);
    }
}
