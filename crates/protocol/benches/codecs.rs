//! What it costs to read and write the words of Overdue: `cargo bench -p overdue-protocol`.
//!
//! A page is 256 timeouts with 100 bytes of payload, as a sweep fires and a consumer acknowledges them.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput};
use overdue_protocol::call::{
    Call, Complete, CompleteItem, Mode, PAGE, Schedule, ScheduleItem, Standing, Sweep, When,
};
use overdue_protocol::entry::{EntryId, idempotency_key};
use overdue_protocol::record::pack_extras;
use overdue_protocol::{Entry, GroupName, Keyspace, Partition, QueueName, RawEntry, Record, Reply, TimerId};

const GENERATION: u64 = 1_764_540_000_123_456;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    entries(&mut criterion);
    records(&mut criterion);
    calls(&mut criterion);
    answers(&mut criterion);
    keys(&mut criterion);
    criterion.final_summary();
}

fn entries(criterion: &mut Criterion) {
    let raw = RawEntry::from_reply(entry(7)).expect("an entry");
    let mut group = criterion.benchmark_group("entry");
    group.bench_function("read from an answer", |bencher| {
        bencher.iter_batched(|| entry(7), RawEntry::from_reply, BatchSize::SmallInput);
    });
    group.bench_function("decode", |bencher| bencher.iter(|| Entry::decode(black_box(&raw))));
    let (queue, id) = (queue(), id(7));
    group.bench_function("idempotency key", |bencher| {
        bencher.iter(|| idempotency_key(black_box(&queue), black_box(&id), GENERATION));
    });
    let entry = EntryId { ms: 1_764_540_000_123, seq: 17 };
    group.bench_function("id to bytes", |bencher| bencher.iter(|| black_box(entry).to_bytes()));
    group.bench_function("id from text", |bencher| {
        bencher.iter(|| black_box("1764540000123-17").parse::<EntryId>());
    });
    group.finish();
}

fn records(criterion: &mut Criterion) {
    // [generation, payload, call, [enc, raw]]
    let mut raw = vec![0x94, 0xcf];
    raw.extend(GENERATION.to_be_bytes());
    raw.extend([0xd9, 100]);
    raw.extend([b'x'; 100]);
    raw.extend(b"\xa812345678\x92\xa3enc\xa3raw");
    let raw = Bytes::from(raw);
    assert_eq!(Record::decode(&raw).map(|record| record.payload.len()), Some(100));
    let mut group = criterion.benchmark_group("record");
    group.bench_function("decode", |bencher| bencher.iter(|| Record::decode(black_box(&raw))));
    group.bench_function("pack extras", |bencher| {
        bencher.iter(|| pack_extras(black_box(&[("enc", b"raw")])));
    });
    group.finish();
}

fn calls(criterion: &mut Criterion) {
    let (schedule, complete) = (schedule(), complete());
    let mut group = criterion.benchmark_group("arguments of a page");
    group.throughput(Throughput::Elements(PAGE.into()));
    group.bench_function("schedule", |bencher| bencher.iter(|| black_box(&schedule).args()));
    group.bench_function("complete", |bencher| bencher.iter(|| black_box(&complete).args()));
    group.finish();
}

fn answers(criterion: &mut Criterion) {
    let (schedule, complete) = (schedule(), complete());
    let sweep = Sweep { partition: partition(), limit: PAGE, grace_ms: 0, sweeper: text("relay") };
    let number = |n: u64| Reply::Int(n.cast_signed());
    let answer = |nested| Reply::Array(vec![Reply::Int(PAGE.into()), Reply::Array(nested)]);
    let armed =
        |n: u64| [text("ARMED"), text(&(GENERATION + n).to_string()), text("1764540000123"), text("0")];
    let scheduled = (0..u64::from(PAGE)).flat_map(|n| armed(n).map(Reply::Bytes));
    let scheduled = answer([Reply::Bytes(Bytes::new())].into_iter().chain(scheduled).collect());
    let dues = vec!["1764540000123"; PAGE as usize].join(",");
    let now = number(1_764_540_000_123);
    let swept = [Reply::Bytes(Bytes::new()), now, number(0), number(1), number(0), number(0)];
    let swept = answer(swept.into_iter().chain([Reply::Bytes(dues.into())]).collect());
    let completed = answer(vec![Reply::Bytes(Bytes::new())]);
    let mut group = criterion.benchmark_group("answer for a page");
    group.throughput(Throughput::Elements(PAGE.into()));
    group.bench_function("schedule", |bencher| {
        bencher.iter_batched(|| scheduled.clone(), |reply| schedule.answer(reply), BatchSize::SmallInput);
    });
    group.bench_function("sweep", |bencher| {
        bencher.iter_batched(|| swept.clone(), |reply| sweep.answer(reply), BatchSize::SmallInput);
    });
    group.bench_function("complete", |bencher| {
        bencher.iter_batched(|| completed.clone(), |reply| complete.answer(reply), BatchSize::SmallInput);
    });
    group.finish();
}

fn keys(criterion: &mut Criterion) {
    let (keyspace, queue, partition, id) = (Keyspace::default(), queue(), partition(), id(7));
    let mut group = criterion.benchmark_group("key");
    group.bench_function("partition", |bencher| bencher.iter(|| keyspace.partition(black_box(&queue), 3)));
    group.bench_function("index", |bencher| bencher.iter(|| black_box(&partition).index()));
    group.bench_function("timer", |bencher| bencher.iter(|| partition.timer_key(black_box(&id))));
    let key = partition.timer_key(&id);
    group.bench_function("parse timer", |bencher| bencher.iter(|| keyspace.parse_timer_key(black_box(&key))));
    group.finish();
}

/// An entry as Redis answers it.
fn entry(seq: u64) -> Reply {
    let (generation, payload) = (GENERATION.to_string(), "x".repeat(100));
    let id = format!("order-{seq:010}");
    let fields = [
        ("id", id.as_str()),
        ("gen", &generation),
        ("due", "1764540000000"),
        ("fired", "1764540000123"),
        ("src", "index"),
        ("kind", "timer"),
        ("payload", &payload),
        ("enc", "raw"),
    ];
    let fields =
        fields.into_iter().flat_map(|(name, value)| [name, value]).map(|part| Reply::Bytes(text(part)));
    let id = Reply::Bytes(text(&format!("1764540000123-{seq}")));
    Reply::Array(vec![id, Reply::Array(fields.collect())])
}

fn schedule() -> Schedule {
    let item = |n| ScheduleItem {
        id: id(n),
        when: When::In(86_400_000),
        mode: Mode::Upsert,
        payload: vec![b'x'; 100].into(),
        call: text("12345678"),
        extras: pack_extras(&[("enc", b"raw")]),
        keyed: false,
    };
    Schedule { partition: partition(), partitions: 1, items: (0..PAGE.into()).map(item).collect() }
}

fn complete() -> Complete {
    let group = GroupName::new("billing").expect("a name");
    let by = Standing { partition: partition(), group, consumer: text("host:1:0123abcd") };
    let item = |seq| CompleteItem::Done(EntryId { ms: 1_764_540_000_123, seq });
    Complete { by, items: (0..PAGE.into()).map(item).collect(), history: 0 }
}

fn partition() -> Partition {
    Keyspace::default().partition(&queue(), 0)
}

fn queue() -> QueueName {
    QueueName::new("orders").expect("a name")
}

fn id(n: u64) -> TimerId {
    TimerId::new(format!("order-{n:010}")).expect("a short text is an id")
}

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}
