//! Certificates that are not to be trusted: the start ends at once, with a line that says which it is and what to do. What
//! works is in `setups`.

use std::fs;

use overdue_tests::redis::Options;
use overdue_tests::{Launch, Tls};

use crate::refusals::assert_refused;

fn ca(tls: &Tls) -> String {
    tls.ca_file().display().to_string()
}

#[test]
fn an_authority_that_is_not_ours_is_refused() {
    let (tls, other) = (Tls::start(), Tls::start());
    assert_refused(&tls.url(), &[], 3, &["Certificate(UnknownIssuer", "ca_file"]);
    assert_refused(&tls.url(), &["--ca-file", &ca(&other)], 3, &["Certificate(", "ca_file"]);
    assert_eq!(tls.redis().count(&["DBSIZE"]), 0);
}

#[test]
fn a_certificate_that_ran_out_is_refused_and_the_line_says_so() {
    let tls = Tls::expired();
    assert_refused(&tls.url(), &["--ca-file", &ca(&tls)], 3, &["Certificate(Expired", "renew"]);
}

#[test]
fn a_certificate_for_another_name_is_refused_and_the_line_says_so() {
    let tls = Tls::with(&Options::default().line("bind 127.0.0.1 127.0.0.2"));
    let url = tls.url().replace("127.0.0.1", "127.0.0.2");
    assert_refused(
        &url,
        &["--ca-file", &ca(&tls)],
        3,
        &["127.0.0.2", "NotValidForName", "use the host name"],
    );
}

#[test]
fn a_file_that_holds_no_authority_is_a_mistake_in_the_settings() {
    let tls = Tls::start();
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    fs::write(&empty, "no certificate\n").unwrap();
    for (file, words) in [
        (empty.display().to_string(), "no certificate in it"),
        ("/nowhere.pem".to_owned(), "cannot read /nowhere.pem"),
    ] {
        assert_refused(&tls.url(), &["--ca-file", &file], 2, &[words, "file"]);
    }
}

#[test]
fn tls_against_a_plain_port_and_the_other_way_round_say_which_is_which() {
    let tls = Tls::start();
    let plain = tls.redis().url().replace("redis://", "rediss://");
    assert_refused(&plain, &["--ca-file", &ca(&tls)], 3, &["redis:// or rediss://"]);
    assert_refused(&tls.url().replace("rediss://", "redis://"), &[], 3, &["redis:// or rediss://"]);
    let finished = Launch::new(["list", "orders", "--redis", &tls.url(), "--ca-file", &ca(&tls)]).run();
    assert_eq!(finished.code, Some(1), "{finished:?}");
}
