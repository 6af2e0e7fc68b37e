//! docs/IDEMPOTENCY.md: its SQL and its handler on SQLite, its script on Redis, each with duplicates that are forced.

use std::fs;

use overdue_tests::{Redis, eventually_blocking};

use super::blocks::{blocks, commands, text};
use super::terminal::{Running, Terminal};

const TIMERS: usize = 20;

/// The first delivery does all its work, and is handed out again all the same.
const TWICE: &str =
    r#"python3 refund.py && { [ "$OVERDUE_ATTEMPT" -gt 1 ] || { echo "retry-after: 10ms"; exit 75; }; }"#;

fn document() -> String {
    text("docs/IDEMPOTENCY.md")
}

fn ok(terminal: &Terminal, line: &str) -> String {
    let mut command = terminal.run(line);
    assert_eq!(command.code(), 0, "{line}\n{}", command.output());
    command.output()
}

/// Runs SQL in `shop.db`; what the last statement answers, a row a line.
fn sql(terminal: &Terminal, statements: &str) -> String {
    let run = "import sqlite3, sys\n\
               db = sqlite3.connect('shop.db', timeout=20)\n\
               for one in filter(str.strip, open('run.sql').read().split(';')):\n    rows = db.execute(one).fetchall()\n\
               db.commit()\n\
               for row in rows: print(*row)\n";
    terminal.file("run.sql", statements);
    terminal.file("sql.py", run);
    ok(terminal, "python3 sql.py")
}

/// The handler of the document, and its tables.
fn shop(terminal: &Terminal, handler: &str) {
    let table = &blocks(&document(), "sql")[0];
    sql(terminal, &format!("{table} CREATE TABLE accounts (id TEXT PRIMARY KEY, cents INTEGER)"));
    let accounts: Vec<_> = (0..TIMERS).map(|n| format!("('account-{n}', 0)")).collect();
    sql(terminal, &format!("INSERT INTO accounts VALUES {}", accounts.join(", ")));
    terminal.file("refund.py", handler);
}

/// Arms a timer for each account, and handles each twice; what the accounts hold then.
fn refund_twice(handler: &str) -> String {
    let redis = Redis::start();
    let terminal = Terminal::at(&redis);
    shop(&terminal, handler);
    terminal.file("twice.sh", TWICE);
    for n in 0..TIMERS {
        ok(&terminal, &format!("overdue schedule refunds account-{n} --in 0s"));
    }
    let consume = commands(&document()).into_iter().find(|line| line.contains("refund.py")).unwrap();
    let consume = consume.replace("python3 refund.py", "sh twice.sh");
    let mut running: Vec<Running> = vec![terminal.run("overdue relay"), terminal.run(&consume)];
    eventually_blocking("all are acknowledged", || {
        let done = redis.call(&["HGET", "overdue:{refunds:0}:tally", "done:bank"]).text();
        if done == TIMERS.to_string() { Ok(()) } else { Err((done, running[1].output())) }
    });
    running.iter_mut().for_each(Running::assert_runs);
    sql(&terminal, "SELECT DISTINCT cents FROM accounts")
}

#[test]
fn the_handler_with_a_unique_index_refunds_once_though_each_timeout_is_handed_out_twice() {
    let handler = &blocks(&document(), "python")[0];
    assert_eq!(refund_twice(handler), "500\n");
    // Without the key in the table the same duplicates refund twice.
    let forgetful = handler.replace("INSERT INTO handled (key) VALUES (?)", "SELECT ?");
    assert_ne!(&forgetful, handler);
    assert_eq!(refund_twice(&forgetful), "1000\n");
}

#[test]
fn duplicates_at_the_same_time_refund_once_and_another_generation_refunds_again() {
    let terminal = Terminal::nowhere();
    shop(&terminal, &blocks(&document(), "python")[0]);
    for generation in 1..=3 {
        let environment = format!("OVERDUE_ID=account-0 OVERDUE_KEY=refunds/account-0/{generation}");
        let mut at_once: Vec<_> =
            (0..8).map(|_| terminal.run(&format!("env {environment} python3 refund.py"))).collect();
        for one in &mut at_once {
            assert_eq!(one.code(), 0, "{}", one.output());
        }
        let cents = sql(&terminal, "SELECT cents FROM accounts WHERE id = 'account-0'");
        assert_eq!(cents, format!("{}\n", 500 * generation));
    }
    assert_eq!(sql(&terminal, "SELECT count(*) FROM handled"), "3\n");
}

#[test]
fn compare_and_set_cancels_what_is_open_and_meant() {
    let terminal = Terminal::nowhere();
    let update = &blocks(&document(), "sql")[1];
    sql(&terminal, "CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT, timer INTEGER)");
    let after = |state: &str, timer: u64, generation: u64| {
        let row = format!("INSERT OR REPLACE INTO orders VALUES ('a', '{state}', {timer});");
        let update = update.replace(":id", "'a'").replace(":generation", &generation.to_string());
        sql(&terminal, &format!("{row} {update} SELECT state FROM orders"))
    };
    for (state, timer, generation, is) in [
        ("open", 7, 7, "cancelled"),
        ("paid", 7, 7, "paid"),
        ("cancelled", 7, 7, "cancelled"),
        ("open", 8, 7, "open"),      // put off while this timeout was on its way
        ("open", 6, 7, "cancelled"), // armed anew, and died before it could note that
    ] {
        assert_eq!(after(state, timer, generation), format!("{is}\n"), "{state} {timer} {generation}");
    }
}

#[test]
fn the_check_in_lua_refunds_once_and_writes_nothing_when_it_cannot() {
    let redis = Redis::start();
    let script = &blocks(&document(), "lua")[0];
    let run = |key: &str, account: &str| redis.command(&["EVAL", script, "2", key, account, "500"]);
    let answers: Vec<_> = (0..3).map(|_| run("handled:refunds/a/7", "account").unwrap().int()).collect();
    assert_eq!(answers, [Some(1), Some(0), Some(0)]);
    assert_eq!(run("handled:refunds/a/8", "account").unwrap().int(), Some(1));
    assert_eq!(redis.call(&["HGET", "account", "cents"]).text(), "1000");
    redis.call(&["SET", "broken", "a string"]);
    assert!(run("handled:refunds/b/7", "broken").is_err());
    assert_eq!(redis.count(&["EXISTS", "handled:refunds/b/7"]), 0, "it may be tried again");
}

#[test]
fn the_effects_are_those_of_the_example() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/client/examples/seats.rs");
    let example = fs::read_to_string(example).unwrap();
    let block = &blocks(&document(), "rust")[0];
    assert!(example.contains(block.as_str()), "{block}");
}
