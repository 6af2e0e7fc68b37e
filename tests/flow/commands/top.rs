//! `top`: what a frame says, for people and machines, and that it gives the terminal back.

use overdue_tests::{Launch, eventually_blocking};
use serde_json::Value;

use super::stage::{Stage, objects, partition};

mod terminal;

fn view(stage: &Stage) -> Value {
    objects(&stage.run(["top", "--once", "--json"])).remove(0)
}

#[test]
fn an_empty_redis_is_one_frame_that_says_that_nothing_fires() {
    let stage = Stage::new();
    let text = stage.ok("top --once");
    assert!(text.starts_with("overdue top  "), "{text}");
    assert!(text.contains("\nno relay was seen in the last 10 s: nothing fires\n"), "{text}");
    assert!(text.contains(" Queues: 0 ") && text.contains(" Relays and consumers: 0 "), "{text}");
    assert!(!text.contains('\x1b'), "{text:?}");
}

#[test]
fn what_needs_a_person_stands_on_top() {
    let stage = Stage::new();
    for queue in ["a", "b", "c"] {
        stage.ok(&format!("queues create {queue}"));
        stage.join(queue, "mail");
    }
    stage.ok("schedule a one --in 1h");
    stage.arm_due("b", b"dead", b"");
    assert_eq!(stage.fire("b"), 1);
    let taken = stage.take("b", "mail");
    stage.bury("b", "mail", &taken);
    stage.arm_due("c", b"late", b"");
    let _relay = Launch::relay(&stage.redis.url()).args(["--queue", "a", "--queue", "b"]).start();
    eventually_blocking("the relay is on the list", || {
        let seen = view(&stage);
        if seen["processes"].as_array().unwrap().len() == 1 { Ok(()) } else { Err(seen) }
    });
    let seen = view(&stage);
    let row = |n: usize| {
        let row = &seen["queues"][n];
        (row["queue"].as_str().unwrap(), row["level"].as_str().unwrap())
    };
    assert_eq!([row(0), row(1), row(2)], [("c", "bad"), ("b", "warn"), ("a", "ok")], "{seen:#}");
    let (c, b, a) = (&seen["queues"][0], &seen["queues"][1], &seen["queues"][2]);
    assert_eq!((&c["overdue"], &c["armed"]), (&1.into(), &1.into()));
    assert!(c["next_in_ms"].as_i64().unwrap() < -5_000, "{c}");
    assert_eq!((&b["dead"], &b["fired_per_s"]), (&1.into(), &0.0.into()));
    assert!(b["last_dead_age_ms"].is_u64(), "{b}");
    assert_eq!((&a["armed"], &a["paused"]), (&1.into(), &false.into()));
    assert_eq!(seen["processes"][0]["works_on"], serde_json::json!(["a", "b"]));
    let text = stage.ok("top --once");
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part:?}: {text}"));
    assert!(at("\nc ") < at("\nb ") && at("\nb ") < at("\na "), "{text}");
    assert!(text.contains("\nrelay "), "{text}");
}

#[test]
fn rates_groups_and_consumers_at_work_are_told() {
    let stage = Stage::new();
    let url = stage.redis.url();
    stage.ok("queues create orders");
    let relay = Launch::relay(&url).start();
    let consumer = Launch::consume(&url, "orders", "billing").args(["--print"]).start();
    eventually_blocking("rates are there", || {
        // Some are due between the two readings.
        for n in 1..=10 {
            stage.ok(&format!("schedule orders order-{n} --in {}ms", n * 200));
        }
        let seen = view(&stage);
        let group = &seen["groups"][0];
        let rate = |value: &Value| value.as_f64().is_some_and(|rate| rate > 0.0);
        let told = rate(&seen["queues"][0]["fired_per_s"]) && rate(&group["done_per_s"]);
        if told && group["live"] == 1 && seen["processes"].as_array().unwrap().len() == 2 {
            Ok(())
        } else {
            Err(seen)
        }
    });
    let seen = view(&stage);
    assert_eq!(seen["groups"][0]["group"], "billing");
    assert_eq!(seen["processes"][0]["role"], "relay", "relays first: {seen:#}");
    assert_eq!(seen["processes"][1]["works_on"][0], "orders/billing");
    drop((consumer, relay));
}

#[test]
fn without_redis_it_says_so_with_exit_code_3() {
    let stage = Stage::new();
    stage.redis.kill9();
    assert_eq!(stage.code(3, "top --once").stdout, "");
}
