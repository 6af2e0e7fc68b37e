"""A private Redis for one measurement: the same settings as those of `overdue bench`."""

import os
import shutil
import socket
import tempfile
import time

from .process import Process, Wrong


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Redis:
    def __init__(self, notify=""):
        self.folder = tempfile.mkdtemp(prefix="overdue-peers-")
        try:
            self.port = free_port()
            self.url = f"redis://127.0.0.1:{self.port}/"
            config = os.path.join(self.folder, "redis.conf")
            with open(config, "w") as file:
                file.write(
                    f'bind 127.0.0.1\nport {self.port}\ndir "{self.folder}"\nunixsocket "{self.folder}/redis.sock"\n'
                    f'logfile "{self.folder}/redis.log"\nsave ""\nappendonly no\nappendfsync no\n'
                    f'notify-keyspace-events "{notify}"\n'
                )
            program = os.environ.get("OVERDUE_REDIS_SERVER", "redis-server")
            try:
                self.process = Process([program, config], self.folder, "redis-server")
            except FileNotFoundError:
                raise SystemExit(f"run: no such program: {program}; install redis-server, or name it in OVERDUE_REDIS_SERVER")
            self.connection, self.file = self._connect()
        except BaseException:
            self.__exit__()
            raise

    def _connect(self):
        end = time.monotonic() + 10
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                # The socket's file is ours alone: no other server answers.
                connection.connect(os.path.join(self.folder, "redis.sock"))
                return connection, connection.makefile("rb")
            except OSError:
                connection.close()
                if self.process.ended() or time.monotonic() > end:
                    raise self.process.wrong("does not answer") from None
                time.sleep(0.005)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if hasattr(self, "connection"):
            self.file.close()
            self.connection.close()
        if hasattr(self, "process"):
            self.process.__exit__()
        shutil.rmtree(self.folder, ignore_errors=True)

    def commands(self, *commands):
        """The answers to all, sent at once."""
        sent = b""
        for words in commands:
            words = [str(word).encode() for word in words]
            sent += b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        self.connection.sendall(sent)
        return [self._answer() for _ in commands]

    def _answer(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:].strip()
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest.decode()
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2].decode() if int(rest) >= 0 else None
        raise Wrong(f"redis-server answered {line!r}")

    def info(self, section):
        (text,) = self.commands(["INFO", section])
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def cpu_us(self):
        cpu = self.info("cpu")
        return round((float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"])) * 1e6)

    def used_memory(self):
        return int(self.info("memory")["used_memory"])
