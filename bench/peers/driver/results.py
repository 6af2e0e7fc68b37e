"""Medians of runs, and how ours compares."""

import statistics

# What is compared, and whether more is better.
RATIOS = [
    ("burst", "per_s", True),
    ("steady", "lateness_ms.p99", False),
    ("schedule", "many_per_s", True),
    ("schedule", "single_per_s", True),
    ("memory", "armed_bytes", False),
]
# How large the job was.
SIZES = {"burst": ["timers"], "steady": ["rate", "armed", "seconds"]}


def median(values):
    """Of each number in objects of the same shape. None when any is None."""
    first = values[0]
    if isinstance(first, dict):
        return {key: median([value[key] for value in values]) for key in first}
    if any(value is None for value in values):
        return None
    middle = statistics.median(values)
    return round(middle) if all(isinstance(value, int) for value in values) else round(middle, 3)


def at(result, path):
    for key in path.split("."):
        result = result.get(key) if isinstance(result, dict) else None
    return result


def ratios(results):
    """Ours divided by the best peer's and by BullMQ's. The plain listener loses what it is not there for: it is no peer here."""
    ours, found = results.get("overdue", {}), []
    for part, path, more in RATIOS:
        mine = at(ours.get(part), path)
        peers = {}
        for name, result in results.items():
            value = at(result.get(part), path)
            # With fewer timers, or at another rate, it is another job.
            same = all(at(result.get(part), size) == at(ours.get(part), size) for size in SIZES.get(part, []))
            if name not in ("overdue", "plain") and value and same:
                peers[name] = value
        if not mine or not peers:
            continue
        best = (max if more else min)(peers, key=peers.get)
        ratio = {"part": part, "what": path, "best_peer": best, "to_best_peer": round(mine / peers[best], 4)}
        ratio["to_bullmq"] = round(mine / peers["bullmq"], 4) if "bullmq" in peers else None
        found.append(ratio)
    return found
