"""Processes that are ended by their handle, and the processor time they use."""

import ctypes
import json
import os
import select
import signal
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")
PR_SET_PDEATHSIG = 1


class Wrong(Exception):
    """A measurement that can't be had, and why."""


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """Ends with the `with` block, whatever happens."""

    def __init__(self, command, folder, name, env=None):
        self.name, self.error_file = name, os.path.join(folder, f"{name}.stderr")
        with open(self.error_file, "ab") as errors:
            self.popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env, preexec_fn=_die_with_parent
            )
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
        self.popen.stdout.close()

    def wrong(self, what):
        with open(self.error_file, errors="replace") as file:
            said = " ".join(file.read()[-600:].split())
        return Wrong(f"{self.name} {what}" + (f": {said}" if said else ""))

    def line(self, seconds):
        """The next line of its stdout, read as JSON."""
        end = time.monotonic() + seconds
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.popen.stdout], [], [], left)[0]:
                raise self.wrong(f"says nothing for {seconds} s")
            read = os.read(self.popen.stdout.fileno(), 65_536)
            if not read:
                raise self.wrong(f"ended with {self.popen.wait()}")
            self.rest += read
        line, self.rest = self.rest.split(b"\n", 1)
        try:
            return json.loads(line)
        except ValueError:
            raise self.wrong(f"said {line[:200]!r}") from None

    def ended(self):
        return self.popen.poll() is not None

    def report(self, seconds=30):
        """What it says on SIGTERM, or has said at its end."""
        if not self.ended():
            self.popen.terminate()
        return self.line(seconds)

    def cpu_us(self):
        """Of all its threads. None when it has ended."""
        try:
            with open(f"/proc/{self.popen.pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) * 1_000_000 // TICKS
        except (OSError, IndexError):
            return None
