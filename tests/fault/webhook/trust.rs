//! Signatures, TLS, and what must not be seen.

use std::fs;
use std::time::Duration;

use overdue_tests::{Launch, Receiver, eventually};

use super::posting;
use crate::scene::{Scene, handled};
use crate::stage::{GROUP, QUEUE, ids, settled, up};

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_Q0ZBQkNERUZHSElKS0xNTk9QUVJTVFVWV1hZWjAxMjM0NTY3";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn during_a_rotation_either_secret_verifies_and_none_is_ever_shown() {
    let (scene, receiver) = (Scene::new().await, Receiver::start().await);
    let file = scene.write("secret", &format!("{OLD}\n"));
    let rotate = |text: &str| {
        let next = scene.write("next", text);
        fs::rename(next, &file).unwrap();
    };
    let launch = posting(&scene, &receiver.url("/hook/c2VjcmV0LXBhdGg?token=dG9rZW4"));
    let launch = launch.args(["--webhook-secret-file", &file]).env("OVERDUE_LOG_FILTER", "debug");
    let consumer = up(launch);
    // One after the other, until one comes that is signed so.
    let signed = async |by: [bool; 2], name: &str| {
        let mut n = 0;
        eventually("a request is signed so", async || {
            let before = receiver.count();
            scene.producer.arm([format!("{name}-{n}")], Duration::ZERO, false).await;
            n += 1;
            eventually("it is posted", async || receiver.count() > before).await;
            let last = receiver.received().pop().unwrap();
            let signed = [OLD, NEW].map(|secret| last.is_signed_with(secret));
            if signed == by { Ok(()) } else { Err(signed) }
        })
        .await;
    };
    signed([true, false], "before").await;
    rotate(&format!("{NEW}\n{OLD}\n"));
    signed([true, true], "meanwhile").await;
    rotate(&format!("{NEW}\n"));
    signed([false, true], "after").await;
    rotate("whsec_c2hvcnQ\n");
    eventually("the bad file is said", async || {
        scene.producer.arm(["bad"], Duration::ZERO, false).await;
        consumer.stderr().contains("the former secrets go on")
    })
    .await;
    signed([false, true], "bad").await;
    settled(&scene.redis, 1).await;
    // A body that was changed on the way is found out.
    let mut changed = receiver.received().pop().unwrap();
    changed.body = b"{}".as_slice().into();
    assert!(!changed.is_signed_with(NEW));
    let log = consumer.stderr();
    for secret in ["MfKQ9r8G", "Q0ZBQkNE", "c2hvcnQ", "c2VjcmV0LXBhdGg", "dG9rZW4"] {
        assert!(!log.contains(secret), "{secret} in\n{log}");
    }
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_with_tls_is_trusted_only_with_its_authority() {
    let (scene, receiver) = (Scene::new().await, Receiver::with_tls().await);
    let url = receiver.url("/");
    let authority = receiver.ca_file().display().to_string();
    scene.producer.arm(ids("t", 5), Duration::ZERO, false).await;
    let distrustful = up(posting(&scene, &url).args(["--attempts", "1"]));
    handled(&distrustful, "unreachable", 1.0).await;
    assert_eq!(receiver.count(), 0);
    let log = distrustful.stderr();
    assert!(log.contains("invalid peer certificate"), "{log}");
    crate::stage::stop(&distrustful);
    let consumer = up(posting(&scene, &url).args(["--webhook-ca-file", &authority]));
    settled(&scene.redis, 1).await;
    assert_eq!(receiver.count(), 5);
    crate::stage::stop(&consumer);
    let by_system = up(posting(&scene, &url).env("SSL_CERT_FILE", &authority));
    scene.producer.arm(ids("u", 5), Duration::ZERO, false).await;
    settled(&scene.redis, 1).await;
    assert!(scene.dead().is_empty() && receiver.count() == 10);
    scene.finish(&by_system);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_work_is_said_at_the_start_in_one_line_without_a_secret() {
    let scene = Scene::new().await;
    let good = scene.write("good", OLD);
    let short = scene.write("short", "whsec_c2hvcnQ=");
    let plain = scene.write("plain", "hunter2");
    let run = |url: &str, more: &[&str]| {
        let launch = Launch::consume(&scene.redis.url(), QUEUE, GROUP).args(["--webhook", url]);
        launch.args(more).run()
    };
    for (url, more, why) in [
        ("https://user:hunter2@example.com/", &[][..], "holds a login"),
        ("ftp://example.com/hunter2", &[], "http"),
        ("example.com/hunter2", &[], "http"),
        ("http:///hunter2", &[], "URL"),
        ("http://a/", &["--webhook-secret-file", "/no/such"], "cannot read the webhook secrets in /no/such"),
        ("http://a/", &["--webhook-secret-file", &short], "a secret has 24 to 64 bytes, this one 5"),
        ("http://a/", &["--webhook-secret-file", &plain], "line 1: a secret begins with whsec_"),
        ("https://a/", &["--webhook-ca-file", "/no/such"], "/no/such"),
        ("https://a/", &["--webhook-ca-file", &good], "PEM"),
    ] {
        let finished = run(url, more);
        assert_eq!(finished.code, Some(2), "{url}: {finished:?}");
        let stderr = &finished.stderr;
        assert!(stderr.contains(why) && stderr.lines().count() == 1, "{url}: {stderr}");
        assert!(!stderr.contains("hunter2") && !stderr.contains("c2hvcnQ"), "{url}: {stderr}");
    }
}
