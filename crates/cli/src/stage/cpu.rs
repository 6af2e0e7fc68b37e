//! Processor time, as the system counts it.

use std::fs;

/// What a process has used, user and system, microseconds; steps of 10 ms. `None` where there is no /proc.
pub(crate) fn of_process(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the name in parentheses, may hold spaces.
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) * 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_uses_time() {
        let start = std::time::Instant::now();
        // On a busy machine work takes its time.
        while of_process(std::process::id()).is_some_and(|us| us < 20_000) {
            assert!(start.elapsed().as_secs() < 20, "no time was counted");
        }
        assert!(of_process(std::process::id()).is_some());
        assert_eq!(of_process(u32::MAX), None);
    }
}
