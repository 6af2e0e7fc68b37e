//! What the operating system says of this process. Linux tells all of it; what another system does not tell is absent.

use std::fmt::Write as _;
use std::fs;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::TimeVal;

use crate::metric::{Kind, Metric};

static STARTED: LazyLock<SystemTime> = LazyLock::new(SystemTime::now);

/// Takes the time of the start: call it first of all.
pub(crate) fn begin() {
    LazyLock::force(&STARTED);
}

/// Adds the metrics of the process to a scrape. `labels` stands in the braces. They are read at the scrape, and
/// written by hand: the registry's counters hold whole numbers only.
pub(crate) fn write(text: &mut String, labels: &str) {
    for (metric, value) in read() {
        let Some(value) = value else { continue };
        let (name, help) = (metric.name(), metric.help());
        let kind = if metric.kind() == Kind::Counter { "counter" } else { "gauge" };
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{{{labels}}} {value}\n");
    }
}

fn read() -> [(Metric, Option<f64>); 7] {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let cpu = getrusage(UsageWho::RUSAGE_SELF).ok();
    let cpu = cpu.map(|usage| seconds(usage.user_time()) + seconds(usage.system_time()));
    let started = STARTED.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs_f64());
    // The one that lists them is not counted.
    let open = fs::read_dir("/proc/self/fd").ok().map(|fds| fds.count().saturating_sub(1) as f64);
    let most = getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft as f64);
    [
        (Metric::ProcessCpu, cpu),
        (Metric::ProcessStart, started),
        (Metric::ProcessMemory, number("VmRSS").map(|kib| kib * 1024.0)),
        (Metric::ProcessVirtual, number("VmSize").map(|kib| kib * 1024.0)),
        (Metric::ProcessFds, open),
        (Metric::ProcessMaxFds, most),
        (Metric::ProcessThreads, number("Threads")),
    ]
}

fn seconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}
