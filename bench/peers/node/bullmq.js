'use strict';
// BullMQ on Node. `../run` starts it:
//   bullmq.js worker   --redis URL --concurrency N
//   bullmq.js burst    --redis URL --count N --due MS
//   bullmq.js steady   --redis URL --rate N --seconds S
//   bullmq.js far      --redis URL --count N
//   bullmq.js schedule --redis URL --many N --single N --callers N
// Every mode ends with one line of JSON on stdout; the worker, on SIGTERM.
const { Queue, Worker } = require('bullmq');

const QUEUE = 'bench';
const PAYLOAD_BYTES = 100;
// One addBulk is one MULTI in one round trip. While Redis works on one, the next are made.
const BULK = 1000;
const AT_ONCE = 4;
const AHEAD_MS = 2000;
const RHYTHM_MS = 100;
const DAY_MS = 86_400_000;

const [mode, ...rest] = process.argv.slice(2);
const args = {};
for (let i = 0; i < rest.length; i += 2) args[rest[i].slice(2)] = rest[i + 1];
const number = name => Number(args[name]);
const { hostname: host, port } = new URL(args.redis);
const connection = { host, port: Number(port) };

const say = value => process.stdout.write(`${JSON.stringify(value)}\n`);
// Date.now() has whole milliseconds only.
const now = () => performance.timeOrigin + performance.now();
const sleepUntil = ms => new Promise(resolve => setTimeout(resolve, Math.max(0, ms - now())));

// The payload begins with the due time that is asked for.
const payload = due => `${due}:`.padEnd(PAYLOAD_BYTES, 'x');

function job(due) {
  const timestamp = Date.now();
  // BullMQ counts the delay from the job's timestamp, which would else be taken later.
  return { name: 't', data: payload(due), opts: { delay: Math.max(0, due - timestamp), timestamp, removeOnComplete: true } };
}

async function add(queue, dues) {
  let next = 0;
  const caller = async () => {
    while (next < dues.length) {
      const from = next;
      next += BULK;
      await queue.addBulk(dues.slice(from, from + BULK).map(job));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, caller));
}

async function worker() {
  const late = [];
  let early = 0;
  const handle = async taken => {
    const ms = now() - Number(taken.data.slice(0, taken.data.indexOf(':')));
    if (ms < 0) early += 1;
    late.push(ms);
  };
  const bench = new Worker(QUEUE, handle, { connection, concurrency: number('concurrency') });
  bench.on('error', error => process.stderr.write(`${error.stack}\n`));
  await bench.waitUntilReady();
  say('ready');
  process.on('SIGTERM', () => {
    late.sort((a, b) => a - b);
    const at = part => (late.length ? late[Math.min(late.length - 1, Math.ceil(part * late.length) - 1)] : null);
    const lateness_ms = { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1) };
    process.stdout.write(`${JSON.stringify({ handled: late.length, early, lateness_ms })}\n`, () => process.exit(0));
  });
}

async function burst(queue) {
  await add(queue, new Array(number('count')).fill(number('due')));
  say({ ended_ms: now() });
}

async function far(queue) {
  const first = Date.now() + DAY_MS;
  await add(queue, Array.from({ length: number('count') }, (_, i) => first + i));
  say({ ended_ms: now() });
}

async function steady(queue) {
  const [rate, first] = [number('rate'), Math.ceil(now()) + AHEAD_MS + RHYTHM_MS];
  const total = rate * number('seconds');
  let behind = 0;
  for (let beat = 1, next = 0; next < total; beat += 1) {
    const until = Math.min(total, Math.ceil((beat * RHYTHM_MS * rate) / 1000));
    await add(queue, Array.from({ length: until - next }, (_, i) => first + Math.floor(((next + i) * 1000) / rate)));
    next = until;
    const at = first - AHEAD_MS + beat * RHYTHM_MS;
    behind = Math.max(behind, now() - at);
    await sleepUntil(at);
  }
  say({ ended_ms: now(), behind_ms: behind });
}

async function schedule(queue) {
  const due = Date.now() + DAY_MS;
  const [many, single] = [number('many'), number('single')];
  // Redis has the scripts from here on.
  await add(queue, [due]);
  let start = now();
  await add(queue, new Array(many).fill(due));
  const many_per_s = (many * 1000) / (now() - start);
  let next = 0;
  start = now();
  const caller = async () => {
    while (next++ < single) {
      const { name, data, opts } = job(due);
      await queue.add(name, data, opts);
    }
  };
  await Promise.all(Array.from({ length: number('callers') }, caller));
  say({ many_per_s, single_per_s: (single * 1000) / (now() - start) });
}

async function main() {
  if (mode === 'worker') return worker();
  const queue = new Queue(QUEUE, { connection });
  await queue.waitUntilReady();
  await { burst, steady, far, schedule }[mode](queue);
  await queue.close();
}

main().catch(error => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
