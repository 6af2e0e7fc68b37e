"""The four measurements of a peer. Each has a Redis of its own."""

import math
import os
import time

from .process import Process, Wrong
from .server import Redis

TRIES = 4
# The programs that add do so this long ahead.
AHEAD_MS = 2_000
LOOK = 0.005
# How long the plain listener is waited for; `overdue bench lag` waits as long.
PATIENCE_MS = 15_000


def now_ms():
    return time.time() * 1_000


def sleep_until(ms):
    time.sleep(max(0, ms - now_ms()) / 1_000)


class Parts:
    def __init__(self, peer, options):
        self.peer, self.options = peer, options
        # What should be told beside a part's figures.
        self.said = {}

    def _start(self, redis, mode, **named):
        env = {**os.environ, "NODE_PATH": os.path.join(self.options.installed, "node", "node_modules")}
        words = [word for name, value in named.items() for word in (f"--{name}", str(value))]
        command = [*self.peer.started(self.options.installed), mode, "--redis", redis.url, *words]
        return Process(command, redis.folder, f"{self.peer.name}-{mode}", env)

    def _add(self, redis, mode, patience, **named):
        with self._start(redis, mode, **named) as adding:
            return adding.line(patience)

    def _worker(self, redis, expect, until):
        concurrency = self.options.concurrency or self.peer.concurrency
        named = {"expect": expect, "until": math.ceil(until)} if self.peer.notify else {"concurrency": concurrency}
        worker = self._start(redis, "worker", **named)
        try:
            worker.line(30)
        except BaseException:
            worker.__exit__()
            raise
        return worker

    def _left(self, redis, total, far):
        """How many of `total` are not acknowledged."""
        if self.peer.done:
            return total - redis.commands(self.peer.done)[0]
        # In the order in which a job moves: one that moves meanwhile is counted twice rather than never.
        return sum(redis.commands(*self.peer.pending)) - far

    def _await_done(self, redis, worker, total, far, seconds):
        end = time.monotonic() + seconds
        while True:
            if self.peer.notify:
                left = 0 if worker.ended() else total
            else:
                left = self._left(redis, total, far)
            if left <= 0:
                return now_ms()
            if not self.peer.notify and worker.ended():
                raise worker.wrong("ended")
            if time.monotonic() > end:
                raise worker.wrong(f"has not finished {left} of {total} after {seconds:.0f} s")
            time.sleep(LOOK)

    def _measured(self, redis, worker, total, far, seconds, before):
        """When all were done, processor time for each, and what the handler measured."""
        done_ms = self._await_done(redis, worker, total, far, seconds)
        redis_us, our_us = redis.cpu_us() - before[0], worker.cpu_us()
        report = worker.report()
        if report["early"] > 0 or (report["handled"] != total and not self.peer.notify):
            raise Wrong(f"{report['handled']} of {total} were handled, {report['early']} of them early")
        each = {
            "redis_us": redis_us / total,
            "our_us": None if our_us is None or before[1] is None else (our_us - before[1]) / total,
        }
        return done_ms, each, report

    def burst(self):
        total = self.peer.capped("burst", "timers", self.options.timers)
        lead_ms = 2_000 + total * self.peer.add_us / 1_000
        for _ in range(TRIES):
            # apalis knows whole seconds only.
            due = math.ceil((now_ms() + lead_ms) / 1_000) * 1_000
            with Redis(self.peer.notify) as redis, self._worker(redis, total, due + PATIENCE_MS) as worker:
                added = self._add(redis, "burst", 60 + lead_ms / 100, count=total, due=due)
                if added["ended_ms"] >= due - 100:
                    lead_ms *= 2
                    continue
                sleep_until(due - 20)
                before = redis.cpu_us(), worker.cpu_us()
                done_ms, each, report = self._measured(redis, worker, total, 0, 60 + total / 500, before)
                per_s = None if self.peer.notify else total * 1_000 / max(1, done_ms - due)
                handled, lateness = report["handled"], report["lateness_ms"]
                return {"timers": total, "handled": handled, "per_s": per_s, **each, "lateness_ms": lateness}
        raise Wrong(f"adding {total} jobs takes longer than {lead_ms / 2_000:.0f} s")

    def steady(self):
        capped = {name: self.peer.capped("steady", name, getattr(self.options, name)) for name in ["rate", "armed"]}
        rate, armed, seconds = capped["rate"], capped["armed"], self.options.seconds
        total = rate * seconds
        with Redis(self.peer.notify) as redis:
            if armed:
                self._add(redis, "far", 60 + armed / 500, count=armed)
            # Its start takes some time.
            until = now_ms() + 10_000 + AHEAD_MS + seconds * 1_000 + PATIENCE_MS
            with self._worker(redis, total, until) as worker:
                self._await_far(redis, armed)
                before = redis.cpu_us(), worker.cpu_us()
                added = self._add(redis, "steady", 60 + seconds * 3, rate=rate, seconds=seconds)
                _, each, report = self._measured(redis, worker, total, armed, 60 + seconds, before)
        if added["behind_ms"] > AHEAD_MS:
            self.said["steady"] = f"adding fell behind by {added['behind_ms'] / 1_000:.1f} s: more than it can take"
        handled, lateness = report["handled"], report["lateness_ms"]
        shape = {"rate": rate, "armed": armed, "seconds": seconds}
        return {**shape, "handled": handled, "lateness_ms": lateness, **each}

    def _await_far(self, redis, armed):
        """Celery's worker takes all of them first."""
        end = time.monotonic() + 60
        while self.peer.name == "celery" and redis.commands(("HLEN", "unacked"))[0] < armed:
            if time.monotonic() > end:
                raise Wrong("its worker does not take the armed tasks")
            time.sleep(LOOK)

    def schedule(self):
        total = self.peer.capped("schedule", "timers", self.options.timers)
        single = max(1, total // 4)
        with Redis(self.peer.notify) as redis:
            callers = self.options.callers
            return self._add(redis, "schedule", 120 + total / 250, many=total, single=single, callers=callers)

    def memory(self):
        total = self.peer.capped("memory", "timers", self.options.timers)
        with Redis(self.peer.notify) as redis:
            # Scripts and the queue's own keys are there before.
            self._add(redis, "far", 60, count=1)
            before = redis.used_memory()
            self._add(redis, "far", 60 + total / 250, count=total)
            return {"armed_bytes": (redis.used_memory() - before) / total}
