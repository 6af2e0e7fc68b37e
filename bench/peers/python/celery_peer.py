"""Celery with Redis as its broker. `../run` starts it with the Python that `../setup` has made; modes are those of jobs.py."""

import argparse
import itertools
import os
import threading
from datetime import datetime, timezone

import jobs
from celery import Celery, signals
from lateness import Lateness

args = jobs.arguments(argparse.ArgumentParser())
if args.mode == "worker":
    # Its banner goes to stdout, where only what is measured is to be.
    said = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
lateness = Lateness()

app = Celery("bench", broker=args.redis)
app.conf.update(
    # A result would be one more write that nobody reads.
    task_ignore_result=True,
    # Acknowledged after the handler, as with the others; else what a dying worker holds is lost.
    task_acks_late=True,
    # "Lots of short tasks": its guide to optimizing.
    worker_prefetch_multiplier=128,
    worker_disable_rate_limits=True,
    # "If you need near millisecond precision": its reference of settings.
    worker_timer_precision=0.1,
    broker_pool_limit=64,
    # What is due later than this comes twice.
    broker_transport_options={"visibility_timeout": 2 * 86_400},
    broker_connection_retry_on_startup=True,
)


@app.task(name="t")
def handle(payload):
    now = jobs.now_ms()
    lateness.handled(int(payload.split(":", 1)[0]), now)


@signals.worker_ready.connect
def ready(**_):
    print('"ready"', file=said, flush=True)


@signals.worker_shutdown.connect
def report(**_):
    print(lateness.report(), file=said, flush=True)


def add_with(producer, due):
    eta = datetime.fromtimestamp(due / 1_000, timezone.utc)
    handle.apply_async((jobs.payload(due),), eta=eta, producer=producer)


def add(dues):
    """Celery has nothing that adds many at once: one by one, on one connection."""
    with app.producer_or_acquire() as producer:
        for due in dues:
            add_with(producer, due)


def single(due, count, callers):
    taken = itertools.count()

    def caller():
        while next(taken) < count:
            with app.producer_or_acquire() as producer:
                add_with(producer, due)

    threads = [threading.Thread(target=caller) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if args.mode == "worker":
    # One process, as with the others. The pool "solo" now and then stops with timers that are due in a crowd.
    pool = ["--pool", "threads", "--concurrency", str(args.concurrency)]
    quiet = ["--loglevel", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    app.worker_main(["worker", *pool, *quiet])
else:
    jobs.run(add, single, args)
