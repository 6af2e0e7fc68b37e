"""Arms, moves and cancels timers of Overdue: overdue.Queue(redis.Redis(), "orders").schedule("order-1001", delay=900)

Copy the whole folder. clients/README.md says what it needs, what each call answers, and what its errors mean.
"""
import binascii, hashlib, itertools, math, os, pathlib, random, re, struct, time, urllib.parse
from collections import namedtuple
from redis import VERSION, ConnectionPool, RedisError, ResponseError
from redis.exceptions import NoScriptError

# `due_ms` is on the server's clock; `fired` is the generation that was due before, when `change` is "fired_old".
Scheduled = namedtuple("Scheduled", "generation due_ms change fired")
Armed = namedtuple("Armed", "generation due_ms")
Timer = namedtuple("Timer", "generation due_ms payload encoding trace")

class Error(Exception): """Nothing was changed: the server refused it, or what stands there can't be used."""
class Unavailable(Error): """It was not executed; later it may be."""
class OutcomeUnknown(Error): """The answer was lost. A cancel may be made again; a schedule armed once, or not."""

# These say that nothing was executed, and pass. Some versions of redis-py turn the first word into a class.
PASSING = re.compile("^(BusyLoading|ReadOnly|Moved|Ask|TryAgain|ClusterDown|MasterDown)Error|[ -](LOADING|BUSY|READONLY|"
                     "MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|MISCONF|NOREPLICAS) |"
                     "max number of clients reached|access a non local key|while the cluster is down")
PURPOSE = ("_",) if VERSION < (5, 3) else ()  # older versions ask for a word that says what a connection is for
FILE = pathlib.Path(__file__)
SCRIPTS = {name: FILE.with_name(name + ".lua").read_bytes() for name in ("schedule", "cancel", "get", "queue")}

def key(queue, id, generation):
    """The idempotency key of a timeout."""
    return f"{queue}/{urllib.parse.quote(id, safe='-._~')}/{generation}"

def partition(id, partitions):
    return binascii.crc_hqx(id, 0) % partitions  # CRC16-XMODEM

def raw(text):
    return text.encode() if isinstance(text, str) else bytes(text)

class Queue:
    """The timers of a queue, which the first call creates. Ids and payloads are bytes, or text, sent as UTF-8.

    Of `redis` only the connections are used: newer versions send a command again after a lost answer.
    """

    def __init__(self, redis, name, namespace="overdue", deadline=5.0):
        if not re.fullmatch("[a-z0-9][a-z0-9._-]{0,63}", name): raise ValueError(f"{name!r} is no name of a queue")
        self.pool, self.name, self.namespace, self.deadline = redis.connection_pool, name, namespace, deadline
        self.partitions, self.fresh_until = 0, 0
        self.pools, self.homes = {}, {}  # other nodes of a cluster by their address, and where each hash tag is

    def schedule(self, id, *, delay=None, at=None, payload=b"", mode="upsert", keyed=False, encoding=None, trace=b""):
        """Arms a timer, due after `delay` seconds or `at` unix ms. Modes: upsert, absent, present, later, earlier."""
        base, ms = ("at", int(at or 0)) if delay is None else ("in", math.ceil(delay * 1000))
        if base == "at" and ms < 10 ** 11: raise ValueError(f"give a delay, or at in unix milliseconds, not in seconds: {at}")
        encoding, trace = raw(encoding or ("text" if isinstance(payload, str) else "raw")), raw(trace)
        extras = b"\xa3enc" + bytes([0xa0 + len(encoding)]) + encoding  # MessagePack, as a record holds them
        extras = b"\x92%b" % extras if not trace else b"\x94%b\xa5trace\xda%b%b" % (extras, struct.pack(">H", len(trace)), trace)
        item = (raw(id), base, ms, mode, raw(payload), os.urandom(8), extras, "1" if keyed else "")
        parts = ["index", "timers", "stream", "tally"] + ([b"key:" + raw(id)] if keyed else [])
        for _ in range(4):
            tag, partitions = self.place(raw(id))
            head = (partitions, self.full(tag, "wake"))
            try:
                word, rest = self.run(tag, "schedule", parts, *head, "", *item)
            except OutcomeUnknown as lost:
                return self.ask(lost, tag, parts, *head, "ask", *item)
            if word in (b"RANGE", b"MODE"): raise ValueError(f"{base} {ms} ms is out of range, or {mode} is no mode")
            if word != b"PARTITIONS": return Scheduled(rest[2], rest[3], rest[1].decode().lower(), rest[4])
            self.look()
            if self.partitions != rest[0]: break
        raise Error(f"the data of {self.name} is of {rest[0]} partitions, the list of queues says {self.partitions}")

    def ask(self, lost, tag, parts, *args):
        """What became of a call whose answer was lost: it is never sent again, but the record bears its 8 bytes."""
        try:
            _, (_, word, generation, due, _) = self.run(tag, "schedule", parts, *args, repeat=True)
        except (Error, ValueError) as error:
            raise OutcomeUnknown(f"{lost}; Redis could not be asked: {error}") from lost
        if word == b"HELD": return Scheduled(generation, due, "confirmed", 0)
        raise OutcomeUnknown(f"{lost}; asked afterwards, Redis holds nothing of this call") from lost

    def cancel(self, id, generation=""):
        """Disarms a timer, or only this generation of it; what was armed, or None. What has fired is not touched."""
        (tag, _), parts = self.place(raw(id)), ["index", "timers", "tally", b"key:" + raw(id)]
        _, (_, word, armed, due) = self.run(tag, "cancel", parts, raw(id), generation)
        return Armed(armed, due) if word == b"CANCELLED" else None

    def get(self, id):
        """The timer that is armed, or None."""
        armed, found = self.run(self.place(raw(id))[0], "get", ["index", "timers"], raw(id), repeat=True)
        if armed and found[5]: raise Error(f"{id!r} will fire with a flaw: it has {found[5].decode()}")
        return Timer(*found[:3], found[3].decode() or "raw", found[4] or None) if armed else None

    def place(self, id):
        """The hash tag of an id, and the number of partitions: read again after 10 s, and after a failure."""
        if not 1 <= len(id) <= 512: raise ValueError("an id has 1 to 512 bytes")
        if time.monotonic() >= self.fresh_until: self.look()
        partitions = self.partitions
        return f"{self.name}:{partition(id, partitions)}", partitions

    def look(self):
        ask = lambda new: self.run("", "queue", ["queues"], self.name, new, self.full("", "queues:wake"), repeat=True)
        partitions, (version,) = ask(self.partitions)  # who knows a queue that is missing writes its number back
        if not partitions:
            first = self.name + ":0"
            told = int(self.call(first, "HGET", self.full(first, "tally"), "partitions", repeat=True) or 0)
            cluster = b"cluster_enabled:1" in self.call("", "INFO", "cluster", repeat=True)
            partitions, (version,) = ask(told if 1 <= told <= 1024 else 4 if cluster else 1)
        if version > 1: raise Error(f"queue {self.name} is in format {version}: use a newer client")
        self.partitions, self.fresh_until = partitions, time.monotonic() + 10

    def full(self, tag, part):
        return (f"{self.namespace}:{{{tag}}}:" if tag else f"{self.namespace}:").encode() + raw(part)

    def run(self, tag, script, parts, *args, repeat=False):
        text, keys = SCRIPTS[script], [self.full(tag, part) for part in parts]
        sha = hashlib.sha1(text).hexdigest()
        return self.call(tag, "EVALSHA", sha, len(keys), *keys, *args, text=text, repeat=repeat)

    def call(self, tag, *command, text=b"", repeat=False):
        """Sends a command until it is executed; with `repeat`, until its answer is there too."""
        until = time.monotonic() + self.deadline
        for tries in itertools.count():
            pool, connection = self.homes.get(tag) or random.choice([self.pool, *self.pools.values()]), None
            try:
                connection = pool.get_connection(*PURPOSE)
                connection.send_command(*command)
                return connection.read_response(disable_decoding=True)
            except NoScriptError:
                command = ("EVAL", text, *command[2:])
                continue
            except RedisError as error:
                said, self.fresh_until = f"{type(error).__name__} {error}", 0
                refused = isinstance(error, ResponseError) or said.startswith("Auth")
                passing = PASSING.search(said) or not refused and (repeat or not connection)
                if not passing or time.monotonic() >= until:
                    raise (Unavailable if passing else Error if refused else OutcomeUnknown)(said) from error
                self.homes.pop(tag, None)
                moved = re.match(r"(?:MovedError|ResponseError MOVED) \d+ (\S*):(\d+)", said)
                if moved:
                    place = {"host": moved[1] or pool.connection_kwargs["host"], "port": int(moved[2])}
                    new = ConnectionPool(pool.connection_class, **{**pool.connection_kwargs, **place})
                    self.homes[tag] = self.pools.setdefault(str(place), new)
            finally:
                if connection: pool.release(connection)
            time.sleep(random.uniform(0.005, 0.01) * 2 ** min(tries, 6))
