"""What a handler measures: from the due time that was asked for to its start."""

import json
import math


class Lateness:
    def __init__(self):
        self.late_ms = []

    def handled(self, due_ms, now_ms):
        self.late_ms.append(now_ms - due_ms)

    def report(self):
        late = sorted(self.late_ms)

        def at(part):
            return late[max(0, math.ceil(part * len(late)) - 1)] if late else None

        lateness = {"p50": at(0.5), "p99": at(0.99), "p999": at(0.999), "max": at(1)}
        early = sum(ms < 0 for ms in late)
        return json.dumps({"handled": len(late), "early": early, "lateness_ms": lateness})
