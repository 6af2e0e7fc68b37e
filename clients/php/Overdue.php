<?php // Arms, moves and cancels timers of Overdue: (new Overdue\Queue($redis, 'orders'))->schedule('order-1001', delay: 900)
// Copy the whole folder. clients/README.md says what it needs, what each call answers, and what its errors mean.
declare(strict_types=1);
namespace Overdue;

class Error extends \RuntimeException {} // nothing was changed: the server refused it, or what stands there can't be used
final class Unavailable extends Error {} // it was not executed; later it may be
final class OutcomeUnknown extends Error {} // the answer was lost: a cancel may be made again; a schedule armed once, or not

/** A timer, due at $dueMs of the server's clock. After a schedule: $change, and which generation $fired for 'fired_old'. */
final class Timer {
    public function __construct(public int $generation, public int $dueMs, public ?string $change = null, public int $fired = 0,
        public ?string $payload = null, public ?string $encoding = null, public ?string $trace = null) {}
}

/** The timers of a queue, which the first call creates. It connects by itself to where $redis is connected. */
final class Queue {
    private const PASSING = '/(^|-)(LOADING|BUSY|READONLY|MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN|MISCONF|NOREPLICAS) '
        . '|max number of clients reached|access a non local key|while the cluster is down/';
    private $scripts, $limits, $login, $nodes, $links = [], $used = [], $homes = [], $partitions = 0, $freshUntil = 0;

    public function __construct(\Redis $redis, private string $name, private string $namespace = 'overdue', private float $deadline = 5) {
        if (!preg_match('/^[a-z0-9][a-z0-9._-]{0,63}$/D', $name)) throw new \ValueError("$name is no name of a queue");
        $this->nodes = ["{$redis->getHost()}:{$redis->getPort()}" => [$redis->getHost(), $redis->getPort()]];
        $this->limits = [$redis->getTimeout(), null, 0, $redis->getReadTimeout()];
        $this->login = ['auth' => $redis->getAuth(), 'select' => $redis->getDbNum()];
        foreach (['schedule', 'cancel', 'get', 'queue'] as $one) $this->scripts[$one] = file_get_contents(__DIR__ . "/$one.lua");
    }

    /** Arms a timer, due after $delay seconds or $at unix milliseconds. Modes: upsert, absent, present, later, earlier. */
    public function schedule(string $id, int|float|null $delay = null, ?int $at = null, string $payload = '',
        string $mode = 'upsert', bool $keyed = false, string $encoding = 'raw', string $trace = ''): Timer {
        [$base, $ms] = $delay === null ? ['at', (int) $at] : ['in', sprintf('%.0f', ceil($delay * 1000))];
        if ($base === 'at' && $ms < 10 ** 11) throw new \ValueError("give a delay, or at in unix milliseconds, not in seconds: $at");
        $extras = "\xa3enc" . chr(0xa0 + strlen($encoding)) . $encoding; // MessagePack, as a record holds them
        $extras = $trace === '' ? "\x92$extras" : "\x94$extras\xa5trace\xda" . pack('n', strlen($trace)) . $trace;
        $item = [$id, $base, $ms, $mode, $payload, random_bytes(8), $extras, $keyed ? '1' : ''];
        $parts = ['index', 'timers', 'stream', 'tally', ...($keyed ? ["key:$id"] : [])];
        for ($try = 0; $try < 4; $try++) {
            [$tag, $partitions] = $this->place($id);
            $head = [$partitions, $this->full($tag, 'wake')];
            try {
                [$word, $rest] = $this->run($tag, 'schedule', $parts, [...$head, '', ...$item]);
            } catch (OutcomeUnknown $lost) {
                return $this->ask($lost, $tag, $parts, [...$head, 'ask', ...$item]);
            }
            if ($word === 'RANGE' || $word === 'MODE') throw new \ValueError("$base $ms is out of range, or $mode is no mode");
            if ($word !== 'PARTITIONS') return new Timer($rest[2], $rest[3], strtolower($rest[1]), $rest[4]);
            $this->look();
            if ($this->partitions !== $rest[0]) break;
        }
        throw new Error("the data of $this->name is of $rest[0] partitions, the list of queues says $this->partitions");
    }

    /** What became of a call whose answer was lost: it is never sent again, but the record bears its 8 bytes. */
    private function ask(OutcomeUnknown $lost, string $tag, array $parts, array $args): Timer {
        try {
            [$word, $rest] = $this->run($tag, 'schedule', $parts, $args, true);
            if ($word === 0 && $rest[1] === 'HELD') return new Timer($rest[2], $rest[3], 'confirmed');
        } catch (Error $error) {
            throw new OutcomeUnknown("{$lost->getMessage()}; Redis could not be asked: {$error->getMessage()}", 0, $lost);
        }
        throw new OutcomeUnknown("{$lost->getMessage()}; asked afterwards, Redis holds nothing of this call", 0, $lost);
    }

    /** Disarms a timer, or only this generation of it; what was armed, or null. What has fired is not touched. */
    public function cancel(string $id, ?int $generation = null): ?Timer {
        $rest = $this->run($this->place($id)[0], 'cancel', ['index', 'timers', 'tally', "key:$id"], [$id, (string) $generation])[1];
        return $rest[1] === 'CANCELLED' ? new Timer($rest[2], $rest[3]) : null;
    }

    /** The timer that is armed, or null. */
    public function get(string $id): ?Timer {
        [$armed, $found] = $this->run($this->place($id)[0], 'get', ['index', 'timers'], [$id], true);
        if ($armed && $found[5] !== '') throw new Error("$id will fire with a flaw: it has $found[5]");
        return $armed ? new Timer($found[0], $found[1], null, 0, $found[2], $found[3] ?: 'raw', $found[4] ?: null) : null;
    }

    public static function key(string $queue, string $id, int $generation): string { // of a timeout: the idempotency key
        return "$queue/" . rawurlencode($id) . "/$generation";
    }

    public static function partition(string $id, int $partitions): int { // CRC16-XMODEM
        foreach ([$crc = 0, ...unpack('C*', $id)] as $byte)
            for ($crc ^= $byte << 8, $bit = 0; $bit < 8; $bit++) $crc = ($crc << 1 ^ ($crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
        return $crc % $partitions;
    }

    /** The hash tag of an id, and the number of partitions: read again after 10 s, and after a failure. */
    private function place(string $id): array {
        if ($id === '' || strlen($id) > 512) throw new \ValueError('an id has 1 to 512 bytes');
        if (hrtime(true) / 1e9 >= $this->freshUntil) $this->look();
        return ["$this->name:" . self::partition($id, $this->partitions), $this->partitions];
    }

    private function look(): void {
        $ask = fn (int $new) => $this->run('', 'queue', ['queues'], [$this->name, $new, $this->full('', 'queues:wake')], true);
        [$partitions, [$version]] = $ask($this->partitions); // who knows a queue that is missing writes its number back
        if ($partitions === 0) {
            $told = (int) $this->call("$this->name:0", ['HGET', $this->full("$this->name:0", 'tally'), 'partitions'], true);
            $cluster = str_contains($this->call('', ['INFO', 'cluster'], true), 'cluster_enabled:1');
            [$partitions, [$version]] = $ask($told > 0 && $told <= 1024 ? $told : ($cluster ? 4 : 1));
        }
        if ($version > 1) throw new Error("queue $this->name is in format $version: use a newer client");
        [$this->partitions, $this->freshUntil] = [$partitions, hrtime(true) / 1e9 + 10];
    }

    private function full(string $tag, string $part): string {
        return $this->namespace . ($tag === '' ? ":$part" : ":{{$tag}}:$part");
    }

    private function run(string $tag, string $script, array $parts, array $args, bool $repeat = false): array {
        [$text, $keys] = [$this->scripts[$script], array_map(fn ($part) => $this->full($tag, $part), $parts)];
        return $this->call($tag, ['EVALSHA', sha1($text), count($keys), ...$keys, ...$args], $repeat, $text);
    }

    /** Sends a command until it is executed; with $repeat, until its answer is there too. */
    private function call(string $tag, array $command, bool $repeat, string $text = ''): mixed {
        for ($until = hrtime(true) / 1e9 + $this->deadline, $tries = 0; ; $tries++) {
            [$node, $sent] = [$this->homes[$tag] ?? array_rand($this->nodes), false];
            try {
                $link = $this->links[$node] ??= $this->connect(...$this->nodes[$node]);
                if (hrtime(true) / 1e9 > ($this->used[$node] ?? INF) + 1) $link->rawCommand('PING'); // it may have ended unseen
                [$sent, $this->used[$node]] = [$link->clearLastError(), hrtime(true) / 1e9];
                $answer = $link->rawCommand(...$command);
                if (($said = $link->getLastError()) === null) return $answer;
            } catch (\RedisException $error) {
                [$said, $this->links[$node]] = [$error->getMessage(), null];
            }
            if (str_starts_with($said, 'NOSCRIPT')) { [$command[0], $command[1]] = ['EVAL', $text]; continue; }
            $refused = preg_match('/^[A-Z]{3,} /', $said) === 1; // by the server, in its own words
            $passing = preg_match(self::PASSING, $said) === 1 || !$refused && ($repeat || !$sent);
            [$this->freshUntil, $this->homes[$tag]] = [0, null];
            if (!$passing || hrtime(true) / 1e9 >= $until)
                throw $passing ? new Unavailable($said) : ($refused ? new Error($said) : new OutcomeUnknown($said));
            if (preg_match('/^MOVED \d+ ((\S*):(\d+))$/', $said, $moved)) $this->nodes[$this->homes[$tag] = $moved[1]]
                = [$moved[2] ?: $this->nodes[$node][0], (int) $moved[3]];
            usleep(random_int(5000, 10000) << min($tries, 6));
        }
    }

    private function connect(string $host, int $port): \Redis {
        ($link = new \Redis())->connect($host, $port, ...$this->limits);
        $link->setOption(\Redis::OPT_MAX_RETRIES, 0); // else it may connect in the midst of a call, and wait for an answer in vain
        foreach (array_filter($this->login) as $step => $with)
            if (!$link->$step($with)) throw new \RedisException($link->getLastError());
        return $link;
    }
}
