"""The results as text."""

COLUMNS = {
    "burst": [
        ("timers", "timers", 0),
        ("handled", "handled", 0),
        ("a second", "per_s", 0),
        ("Redis us", "redis_us", 1),
        ("worker us", "our_us", 1),
        ("late p50 ms", "lateness_ms.p50", 1),
        ("max ms", "lateness_ms.max", 1),
    ],
    "steady": [
        ("a second", "rate", 0),
        ("armed", "armed", 0),
        ("handled", "handled", 0),
        ("p50 ms", "lateness_ms.p50", 1),
        ("p99 ms", "lateness_ms.p99", 1),
        ("p99.9 ms", "lateness_ms.p999", 1),
        ("max ms", "lateness_ms.max", 1),
        ("Redis us", "redis_us", 1),
        ("worker us", "our_us", 1),
    ],
    "schedule": [("many, a second", "many_per_s", 0), ("single, a second", "single_per_s", 0)],
    "memory": [("bytes for each", "armed_bytes", 0)],
}
TITLES = {
    "burst": "burst: all due at one instant; from then until all are acknowledged",
    "steady": "steady: lateness from due to handler start, beside armed timers that are far away",
    "schedule": "schedule: many with one call, and single from {callers} callers at once",
    "memory": "memory: of an armed timer",
}


def number(value, digits):
    return "-" if value is None else f"{value:,.{digits}f}"


def rows(cells):
    widths = [max(len(row[n]) for row in cells) for n in range(len(cells[0]))]
    for row in cells:
        yield "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip()


def lines(results, ratios, why, at, options):
    for part in options.parts:
        yield ""
        yield TITLES[part].format(callers=options.callers)
        columns = COLUMNS[part]
        cells = [["", *(title for title, _, _ in columns)]]
        for name, result in results.items():
            cells.append([name, *(number(at(result[part], path), digits) for _, path, digits in columns)])
        yield from rows(cells)
        yield from (f"  {name}: {text}" for (told, name), text in why.items() if told == part)
    if ratios:
        yield ""
        yield "ours divided by theirs (for lateness and memory less is better)"
        cells = [["", "best peer", "", "BullMQ"]]
        for ratio in ratios:
            what = f"{ratio['part']} {ratio['what'].replace('lateness_ms.', '')}"
            cells.append([what, number(ratio["to_best_peer"], 2), ratio["best_peer"], number(ratio["to_bullmq"], 2)])
        yield from rows(cells)
