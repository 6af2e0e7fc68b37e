"""Who takes part, how each is started, and what each can't do."""

import os
import sys
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
ROOT = os.path.dirname(os.path.dirname(HERE))


@dataclass(frozen=True)
class Peer:
    name: str
    # The program and its first words, for the folder of what is installed.
    command: object
    # What has to be there for it.
    needs: tuple
    # Jobs that its worker handles at the same time: README.md says why.
    concurrency: int
    # How long adding one job may take, microseconds: only how long a burst is prepared.
    add_us: int
    # Commands whose answers' sum is how many jobs are not yet acknowledged, but for those that are far away.
    pending: tuple = ()
    # The same, where it counts what is done instead.
    done: tuple = ()
    # Where it can't do as much as the others: for each part the most, and why.
    most: dict = field(default_factory=dict)
    notify: str = ""

    def missing(self, installed):
        return [path for path in self.needs if not os.path.exists(os.path.join(installed, path))]

    def started(self, installed):
        return [part.format(installed=installed, here=HERE) for part in self.command]

    def capped(self, part, name, asked):
        return min(asked, self.most.get(part, {}).get(name, asked))


BULLMQ_PENDING = (("ZCARD", "bull:bench:delayed"), ("LLEN", "bull:bench:wait"), ("LLEN", "bull:bench:active"))

PEERS = {
    peer.name: peer
    for peer in [
        Peer(
            name="bullmq",
            command=("node", "{here}/node/bullmq.js"),
            needs=("node/node_modules/bullmq", "node/node_modules/ioredis"),
            concurrency=100,
            add_us=150,
            pending=BULLMQ_PENDING,
        ),
        Peer(
            name="bullmq_official",
            command=("{installed}/rust/release/peers", "bullmq"),
            needs=("rust/release/peers",),
            concurrency=100,
            add_us=80,
            pending=BULLMQ_PENDING,
        ),
        Peer(
            name="apalis",
            command=("{installed}/rust/release/peers", "apalis"),
            needs=("rust/release/peers",),
            concurrency=1_000,
            add_us=80,
            done=("SCARD", "bench:done"),
            most={
                "burst": {"timers": 5_000, "why": "its script unpacks all that is due at once, and fails with some 8,000"},
            },
        ),
        Peer(
            name="celery",
            command=("{installed}/celery/bin/python", "{here}/python/celery_peer.py"),
            needs=("celery/bin/celery",),
            concurrency=10,
            add_us=2_000,
            pending=(("LLEN", "celery"), ("HLEN", "unacked")),
            most={
                "burst": {"timers": 5_000, "why": "its worker holds all of them in memory, and takes long"},
                "steady": {"rate": 200, "armed": 5_000, "why": "its worker takes all armed tasks into its memory, and is slow"},
                "schedule": {"timers": 5_000, "why": "it has nothing that adds many at once"},
                "memory": {"timers": 5_000, "why": "adding more takes long; it is the same for each"},
            },
        ),
        Peer(
            name="plain",
            command=(sys.executable, "{here}/python/plain.py"),
            needs=(),
            concurrency=1,
            add_us=20,
            notify="Ex",
        ),
    ]
}

NAMES = ["overdue", *PEERS]
