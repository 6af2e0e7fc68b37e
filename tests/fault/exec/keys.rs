//! What commands and printed lines say of watched keys.

use std::fs;

use overdue_tests::{FiredKey, Launch};

use crate::scene::Scene;
use crate::stage::{QUEUE, running, settled, stop, up};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_is_told_all_that_is_known_of_a_watched_key_and_nothing_that_is_not() {
    let scene = Scene::new().await;
    let out = scene.file("out");
    // Two run at once.
    let script = format!(
        "o={out}.$OVERDUE_GENERATION; env | grep ^OVERDUE_ | grep -v _MS= | sort > $o.tmp; \
         echo $OVERDUE_CAPTURED_MS $OVERDUE_DUE_MS >> $o.tmp; mv $o.tmp $o"
    );
    let launch = running(&scene.redis.url(), &script, &[]);
    let consumer = up(["RULE", "FLAW", "CAUSE", "ENCODING"]
        .iter()
        .fold(launch, |launch, name| launch.env(format!("OVERDUE_{name}"), "inherited")));
    let key = FiredKey::new("session:42", 7);
    scene.fire(&[
        key.clone().with("cause", "evicted").with("flaw", "value_type"),
        key.with("gen", "8").with("flaw", "no\0text").with("enc", vec![b'x'; 200_000]).with("proof", "oath"),
    ]);
    settled(&scene.redis, 1).await;
    let said = |generation: u32| fs::read_to_string(format!("{out}.{generation}")).unwrap();
    let all = "OVERDUE_ATTEMPT=1\nOVERDUE_CAUSE=evicted\nOVERDUE_DB=3\nOVERDUE_ENCODING=json\nOVERDUE_FLAW=value_type\n\
               OVERDUE_GENERATION=7\nOVERDUE_GROUP=billing\nOVERDUE_ID=session:42\nOVERDUE_ID_BASE64=c2Vzc2lvbjo0Mg==\n\
               OVERDUE_KEY=orders/session%3A42/7\nOVERDUE_KIND=key\nOVERDUE_PROOF=nudge\nOVERDUE_QUEUE=orders\n\
               OVERDUE_RULE=sessions\nOVERDUE_SOURCE=index\n950 1000\n";
    assert_eq!(said(7), all);
    let known =
        ["CAUSE=", "ENCODING=", "FLAW=", "PROOF="].map(|name| said(8).contains(&format!("OVERDUE_{name}")));
    assert_eq!(known, [false; 4], "{}", said(8));
    assert!(scene.dead().is_empty());
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_of_64_kib_of_any_bytes_reaches_the_command_and_one_that_cannot_says_why() {
    let scene = Scene::new().await;
    let out = scene.file("out");
    let script = format!(
        "printf %s \"$OVERDUE_ID_BASE64\" | base64 -d | cksum >> {out}; echo \"${{OVERDUE_ID+text}}\" >> {out}; \
         printf %s \"$OVERDUE_KEY\" | head -c 22 >> {out}"
    );
    let consumer = up(running(&scene.redis.url(), &script, &[]));
    let long: Vec<u8> = (0..=255).cycle().take(65_536).collect();
    scene.fire(&[FiredKey::new(long.clone(), 7)]);
    settled(&scene.redis, 1).await;
    fs::write(scene.file("in"), &long).unwrap();
    let sum = std::process::Command::new("cksum")
        .stdin(fs::File::open(scene.file("in")).unwrap())
        .output()
        .unwrap();
    let expected = String::from_utf8(sum.stdout).unwrap() + "\norders/base64:AAECAwQF";
    assert_eq!(fs::read_to_string(&out).unwrap(), expected);
    scene.fire(&[FiredKey::new(vec![b'x'; 110_000], 8)]);
    settled(&scene.redis, 1).await;
    let [_, reason, detail] = scene.dead().remove(0);
    assert_eq!(reason, "rejected");
    assert!(detail.starts_with("its id of 110000 bytes fits into no environment variable"), "{detail}");
    scene.finish(&consumer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_printed_key_says_which_rule_and_db_it_is_of_and_how_it_was_proven() {
    let scene = Scene::new().await;
    let url = scene.redis.url();
    for (more, n) in [(&["--json"][..], 0), (&[], 1)] {
        let consumer = up(Launch::consume(&url, QUEUE, "billing").args(["--print"]).args(more));
        scene.fire(&[FiredKey::new("session:42", 7 + n), FiredKey::new(vec![0xff; 65_536], 9 + n)]);
        settled(&scene.redis, 1).await;
        stop(&consumer);
        let text = consumer.stdout();
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_by_key(|line| line.len());
        if n == 1 {
            assert!(lines[0].contains("  1  [sessions, db 3, proof nudge]  {\"user\":\"7\"}"), "{text}");
            assert!(lines[1].contains("\\xff\\xff... (65536 bytes)  1970-"), "{text}");
            continue;
        }
        let object: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
        let fields =
            ["kind", "rule", "db", "proof", "captured_ms", "encoding"].map(|name| object[name].clone());
        assert_eq!(
            serde_json::json!(fields),
            serde_json::json!(["key", "sessions", 3, "nudge", 950, "json"])
        );
        let long: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
        assert_eq!(long["id_base64"].as_str().map(str::len), Some(87_384));
    }
    stop(&scene.relay);
}
