"""What is added, and when: the same for both peers. One line of JSON at the end."""

import json
import math
import time

PAYLOAD_BYTES = 100
AHEAD_MS = 2_000
RHYTHM_MS = 100
DAY_MS = 86_400_000


def now_ms():
    return time.time() * 1_000


def sleep_until(ms):
    time.sleep(max(0, ms - now_ms()) / 1_000)


def payload(due):
    """It begins with the due time that is asked for."""
    return f"{due}:".ljust(PAYLOAD_BYTES, "x")


def ended(**more):
    return {"ended_ms": now_ms(), **more}


def burst(add, args):
    add([args.due] * args.count)
    return ended()


def far(add, args):
    first = int(now_ms()) + DAY_MS
    add(range(first, first + args.count))
    return ended()


def steady(add, args):
    rate, total = args.rate, args.rate * args.seconds
    first = math.ceil(now_ms()) + AHEAD_MS + RHYTHM_MS
    done, beat, behind = 0, 1, 0
    while True:
        until = min(total, -(-beat * RHYTHM_MS * rate // 1_000))
        add([first + n * 1_000 // rate for n in range(done, until)])
        done = until
        if done == total:
            return ended(behind_ms=behind)
        at = first - AHEAD_MS + beat * RHYTHM_MS
        behind = max(behind, now_ms() - at)
        sleep_until(at)
        beat += 1


def schedule(add, single, args):
    """`single` adds so many, one by one from so many callers at once."""
    due = int(now_ms()) + DAY_MS
    add([due])
    start = time.monotonic()
    add([due] * args.many)
    many_per_s = args.many / (time.monotonic() - start)
    start = time.monotonic()
    single(due, args.single, args.callers)
    return {"many_per_s": many_per_s, "single_per_s": args.single / (time.monotonic() - start)}


def run(add, single, args):
    if args.mode == "schedule":
        said = schedule(add, single, args)
    else:
        said = {"burst": burst, "far": far, "steady": steady}[args.mode](add, args)
    print(json.dumps(said), flush=True)


def arguments(parser):
    parser.add_argument("mode", choices=["worker", "burst", "steady", "far", "schedule"])
    parser.add_argument("--redis", required=True, metavar="URL")
    for name in ["concurrency", "count", "due", "rate", "seconds", "many", "single", "callers", "expect", "until"]:
        parser.add_argument(f"--{name}", type=int)
    return parser.parse_args()
