//! Keys that end far away: what makes plain notifications late.

use overdue_sandbox::{Connection, Error};

/// Keys set by one script: Redis serves others in between.
const PAGE: u32 = 10_000;

/// Sets `keys` keys, `session:1` and so on, that end in a day or later.
pub(crate) fn load(redis: &mut Connection, keys: u32) -> Result<(), Error> {
    const SCRIPT: &str =
        "for i = ARGV[1], ARGV[2] do redis.call('SET', 'session:' .. i, 'x', 'EX', 86400 + i % 86400) end";
    for first in (1..=keys).step_by(PAGE as usize) {
        let last = keys.min(first + PAGE - 1);
        redis.call(&["EVAL", SCRIPT, "0", &first.to_string(), &last.to_string()])?;
    }
    Ok(())
}
