//! Calls of the scripts over a plain connection, without the store: for what measures Redis alone.

use bytes::Bytes;
use overdue_protocol::Reply;
use overdue_sandbox::{Connection, Value};

/// Gives Redis a script; its digest.
pub(crate) fn load(redis: &mut Connection, text: &str) -> Result<Bytes, overdue_sandbox::Error> {
    Ok(redis.call(&["SCRIPT", "LOAD", text])?.text().into())
}

/// The command that runs a script.
pub(crate) fn evalsha(digest: Bytes, keys: Vec<Bytes>, args: Vec<Bytes>) -> Vec<Bytes> {
    let mut command = Vec::with_capacity(3 + keys.len() + args.len());
    command.extend([Bytes::from_static(b"EVALSHA"), digest, Bytes::from(keys.len().to_string())]);
    command.extend(keys.into_iter().chain(args));
    command
}

/// An answer as the protocol reads it.
pub(crate) fn reply(value: Value) -> Reply {
    match value {
        Value::Nil => Reply::Nil,
        Value::Int(n) => Reply::Int(n),
        Value::Bytes(bytes) => Reply::Bytes(bytes.into()),
        Value::Error(text) => Reply::Bytes(text.into()),
        Value::Array(items) => Reply::Array(items.into_iter().map(reply).collect()),
    }
}

/// How often a command was called so far, and what it took, microseconds: from INFO commandstats.
pub(crate) fn stats(redis: &mut Connection, command: &str) -> Result<(u64, u64), overdue_sandbox::Error> {
    let info = redis.call(&["INFO", "commandstats"])?.text();
    let head = format!("cmdstat_{command}:");
    let line = info.lines().find_map(|line| line.strip_prefix(&head)).unwrap_or_default();
    let number = |name| line.split(',').find_map(|part| part.strip_prefix(name)?.parse().ok()).unwrap_or(0);
    Ok((number("calls="), number("usec=")))
}
