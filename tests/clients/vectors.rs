//! The tables of docs/PROTOCOL.md, whatever the language.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use overdue_protocol::{Keyspace, QueueName, Record};
use overdue_tests::{Redis, Wire};
use serde_json::{Value, json};

use crate::language::{Language, root};
use crate::speaker::Speaker;

/// The rows of the table whose heading is this line, cell by cell, without backticks.
fn table(heading: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root().join("docs/PROTOCOL.md")).unwrap();
    let (_, behind) = text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let rows = behind.lines().skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().replace('`', "")).collect())
        .collect()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).map(|two| u8::from_str_radix(&two.iter().collect::<String>(), 16).unwrap()).collect()
}

/// An id as the tables write it: text, or `bytes ff 00`.
fn id(cell: &str) -> Vec<u8> {
    match cell.strip_prefix("bytes ").or(cell.strip_prefix("byte ")) {
        Some(bytes) => hex(bytes),
        None => cell.as_bytes().to_vec(),
    }
}

#[test]
fn each_language_finds_the_same_partition() {
    let rows = table("| id | CRC16-XMODEM | of 4 | of 16 |");
    assert_eq!(rows.len(), 3);
    let redis = Redis::start();
    for language in Language::ALL {
        let mut speaker = Speaker::start(language, redis.addr());
        for row in &rows {
            for (of, cell) in [(65_536, &row[1]), (4, &row[2]), (16, &row[3])] {
                let number = match cell.strip_prefix("0x") {
                    Some(digits) => i64::from_str_radix(digits, 16).unwrap(),
                    None => cell.parse().unwrap(),
                };
                let asked = json!({"what": "partition", "id": BASE64.encode(id(&row[0])), "of": of});
                assert_eq!(speaker.call(&asked), json!(number), "{language:?} {row:?}");
            }
        }
    }
}

#[test]
fn each_language_writes_the_same_idempotency_key() {
    let rows = table("| queue, id, generation | key |");
    assert_eq!(rows.len(), 3);
    let redis = Redis::start();
    for language in Language::ALL {
        let mut speaker = Speaker::start(language, redis.addr());
        for row in &rows {
            let parts: Vec<_> = row[0].split(", ").collect();
            let generation: u64 = parts[2].parse().unwrap();
            let asked = json!({"what": "key", "queue": parts[0], "id": BASE64.encode(id(parts[1])),
                "generation": generation});
            assert_eq!(speaker.call(&asked), json!(row[1]), "{language:?} {row:?}");
        }
    }
}

#[test]
fn each_language_reads_and_writes_the_same_records() {
    let rows = table("| record | hex |");
    assert_eq!(rows.len(), 2);
    let partition = Keyspace::default().partition(&QueueName::new("orders").unwrap(), 0);
    for language in Language::ALL {
        let redis = Redis::start();
        let mut speaker = Speaker::start(language, redis.addr());
        let due = redis.now_ms() + 3_600_000;
        for row in &rows {
            let raw = hex(&row[1]);
            let record = Record::decode(&raw.clone().into()).unwrap();
            redis.call(&[&b"ZADD"[..], &partition.index(), due.to_string().as_bytes(), b"vector"]);
            redis.call(&[&b"HSET"[..], &partition.timers(), b"vector", &raw]);
            let found = speaker.get(b"vector");
            let encoding = if record.extras.is_empty() { "raw" } else { "text" };
            assert_eq!(found["generation"], json!(record.generation), "{language:?} {found}");
            assert_eq!(found["due_ms"], json!(due));
            assert_eq!(found["payload"], json!(BASE64.encode(&record.payload)));
            assert_eq!((&found["encoding"], &found["trace"]), (&json!(encoding), &Value::Null));
        }
        // The second row, but for the generation and the bytes that name the call.
        let row = hex(&rows[1][1]);
        let armed = speaker.schedule(b"mine", b"hi", &json!({"delay": 900, "encoding": "text"}));
        let mine = Wire::connect(&redis).hgetall(partition.timers()).unwrap()[&b"mine"[..]].clone();
        assert_eq!(mine[2..10], armed["generation"].as_u64().unwrap().to_be_bytes());
        let call = 14..22;
        assert_eq!(row[call.clone()], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((&mine[..2], &mine[10..14], &mine[22..]), (&row[..2], &row[10..14], &row[22..]));
        assert_ne!(mine[call.clone()], row[call]);
        // What is no record is said, and changes nothing.
        redis.call(&[&b"HSET"[..], &partition.timers(), b"vector", b"\x07"]);
        let flawed = speaker.get(b"vector");
        assert_eq!(flawed["error"], "Error", "{flawed}");
        assert!(flawed["text"].as_str().unwrap().contains("it has bad record"), "{flawed}");
    }
}
