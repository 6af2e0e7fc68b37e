"""The plain keyspace listener: SET with a due time, SUBSCRIBE __keyevent@0__:expired. Modes are those of jobs.py.

The worker ends by itself when it has heard of `--expect` keys, or at `--until`, unix milliseconds. It reads the socket
itself: a client library would be slower.
"""

import argparse
import itertools
import re
import selectors
import socket
from urllib.parse import urlparse

import jobs
from lateness import Lateness

# So many commands are on their way at once.
PIPELINE = 1_000
EXPIRED = re.compile(rb"\r\nk:(\d+):\d+\r\n")

args = jobs.arguments(argparse.ArgumentParser())
numbers = itertools.count()


def connect():
    url = urlparse(args.redis)
    connection = socket.create_connection((url.hostname, url.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def command(*words):
    words = [word.encode() if isinstance(word, str) else word for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def arm(due):
    return command("SET", f"k:{due}:{next(numbers)}", jobs.payload(due), "PXAT", str(due))


def add(dues):
    connection, dues = connect(), iter(dues)
    while page := list(itertools.islice(dues, PIPELINE)):
        connection.sendall(b"".join(arm(due) for due in page))
        expected = len(page) * len(b"+OK\r\n")
        while expected > 0:
            expected -= len(connection.recv(65_536))
    connection.close()


def single(due, count, callers):
    """So many connections, each waiting for its answer."""
    waiting = selectors.DefaultSelector()
    for _ in range(callers):
        waiting.register(connect(), selectors.EVENT_READ)
    for key in list(waiting.get_map().values()):
        key.fileobj.sendall(arm(due))
    sent, answered = callers, 0
    while answered < count:
        for key, _ in waiting.select():
            key.fileobj.recv(64)
            answered += 1
            if sent < count:
                key.fileobj.sendall(arm(due))
                sent += 1


def listen():
    lateness = Lateness()
    connection = connect()
    connection.sendall(command("SUBSCRIBE", "__keyevent@0__:expired"))
    connection.recv(4_096)
    print('"ready"', flush=True)
    connection.settimeout(0.1)
    rest = b""
    while len(lateness.late_ms) < args.expect and jobs.now_ms() < args.until:
        try:
            read = connection.recv(1 << 20)
        except TimeoutError:
            continue
        if not read:
            # Redis cuts off a listener that does not keep up; what it says meanwhile is gone.
            connection = connect()
            connection.sendall(command("SUBSCRIBE", "__keyevent@0__:expired"))
            connection.settimeout(0.1)
            rest = b""
            continue
        now, rest, end = jobs.now_ms(), rest + read, 0
        for found in EXPIRED.finditer(rest):
            lateness.handled(int(found[1]), now)
            end = found.end()
        rest = rest[end:]
    print(lateness.report(), flush=True)


if args.mode == "worker":
    listen()
else:
    jobs.run(add, single, args)
