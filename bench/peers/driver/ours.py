"""Overdue itself: `overdue bench PART --json`, which starts the Redis of each run."""

import json
import os
import subprocess
import sys

from .contestants import ROOT
from .process import Wrong

# The least that `overdue bench burst` takes.
FEWEST = 1_000


def program():
    named = os.environ.get("OVERDUE_BIN")
    path = named or os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release", "overdue")
    if os.access(path, os.X_OK):
        return os.path.abspath(path)
    print(f"run: no program at {path}; build it: cargo build --release -p overdue-cli (or name one in OVERDUE_BIN)", file=sys.stderr)
    raise SystemExit(2)


class Ours:
    def __init__(self, options):
        self.options, self.program, self.said = options, program(), {}
        # It takes a variable that is no setting of its own for a mistake.
        self.env = {name: value for name, value in os.environ.items() if name != "OVERDUE_BIN"}

    def _run(self, *words, seconds=600):
        return subprocess.run(
            [self.program, *words], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
        )

    def _bench(self, part, **named):
        """Only what this program knows is asked of it: an older one may lack a part or an option."""
        help = self._run("bench", part, "--help")
        if help.returncode != 0:
            raise Wrong(f"this overdue has no `bench {part}`")
        words = [word for name, value in named.items() if f"--{name} " in help.stdout for word in (f"--{name}", str(value))]
        ended = self._run("bench", part, *words, "--json")
        if ended.returncode != 0:
            raise Wrong(f"overdue bench {part} ended with {ended.returncode}: {ended.stderr.strip()[-800:]}")
        try:
            return json.loads(ended.stdout.strip().splitlines()[-1])
        except (ValueError, IndexError):
            raise Wrong(f"overdue bench {part} --json said {ended.stdout!r}") from None

    def burst(self):
        said = self._bench("burst", timers=max(FEWEST, self.options.timers))
        # It fails when not all were handled.
        return {
            "timers": said["timers"],
            "handled": said["timers"],
            "per_s": said["per_s"],
            "redis_us": said["redis_us"],
            "our_us": said["our_us"],
            "lateness_ms": said.get("lateness_ms"),
        }

    def steady(self):
        options = self.options
        said = self._bench("steady", rate=options.rate, armed=options.armed, seconds=options.seconds)
        return {name: said[name] for name in ["rate", "armed", "seconds", "handled", "lateness_ms", "redis_us", "our_us"]}

    def schedule(self):
        said = self._bench("schedule", timers=max(FEWEST, self.options.timers), callers=self.options.callers)
        return {name: said[name] for name in ["many_per_s", "single_per_s"]}

    def memory(self):
        said = self._bench("memory", timers=max(FEWEST, self.options.timers))
        return {"armed_bytes": said["armed_bytes"]}
