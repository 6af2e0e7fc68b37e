"""Does what the lines of its standard input say with the client beside it: a JSON object in, a JSON value out."""
import base64, json, sys

sys.path.insert(0, sys.argv[1])
import overdue, redis

server = redis.Redis(host=sys.argv[2], port=int(sys.argv[3]), socket_timeout=float(sys.argv[4]))
queues = {}


def text(raw):
    return None if raw is None else base64.b64encode(raw).decode()


def do(what, queue="", id="", payload="", **rest):
    id, payload = base64.b64decode(id), base64.b64decode(payload)
    if what == "partition":
        return overdue.partition(id, rest["of"])
    if what == "key":
        return overdue.key(queue, id, rest["generation"])
    timers = queues.setdefault(queue, overdue.Queue(server, queue, deadline=float(sys.argv[4])))
    if what == "schedule":
        return timers.schedule(id, payload=payload, **rest)._asdict()
    if what == "cancel":
        armed = timers.cancel(id, **rest)
        return armed and armed._asdict()
    timer = timers.get(id)
    return timer and timer._replace(payload=text(timer.payload), trace=text(timer.trace))._asdict()


for line in sys.stdin:
    try:
        answer = do(**json.loads(line))
    except (overdue.Error, ValueError) as error:
        answer = {"error": type(error).__name__, "text": str(error)}
    print(json.dumps(answer), flush=True)
