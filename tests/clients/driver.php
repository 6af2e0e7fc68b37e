<?php
// Does what the lines of its standard input say with the client beside it: a JSON object in, a JSON value out.
declare(strict_types=1);
[, $folder, $host, $port, $deadline] = $argv;
require "$folder/Overdue.php";

use Overdue\{Queue, Timer};

$server = new Redis();
for ($tries = 0; ; $tries++) {
    try {
        $server->connect($host, (int) $port, (float) $deadline, null, 0, (float) $deadline);
        break;
    } catch (RedisException $error) {
        if ($tries === 100) throw $error;
    }
}
$queues = [];

function told(?Timer $timer): ?array
{
    if ($timer === null) return null;
    $text = fn (?string $raw) => $raw === null ? null : base64_encode($raw);
    $more = ['payload' => $text($timer->payload), 'trace' => $text($timer->trace), 'due_ms' => $timer->dueMs];
    return array_merge((array) $timer, $more);
}

function ask(array $asked): mixed
{
    global $server, $queues, $deadline;
    foreach (['id', 'payload'] as $raw) {
        if (isset($asked[$raw])) $asked[$raw] = base64_decode($asked[$raw]);
    }
    [$what, $queue] = [$asked['what'], $asked['queue'] ?? ''];
    unset($asked['what'], $asked['queue']);
    if ($what === 'partition') return Queue::partition($asked['id'], $asked['of']);
    if ($what === 'key') return Queue::key($queue, $asked['id'], $asked['generation']);
    $timers = $queues[$queue] ??= new Queue($server, $queue, deadline: (float) $deadline);
    return told($timers->$what(...$asked));
}

while (($line = fgets(STDIN)) !== false) {
    try {
        $answer = ask(json_decode($line, true, flags: JSON_THROW_ON_ERROR));
    } catch (Overdue\Error | ValueError $error) {
        $answer = ['error' => (new ReflectionClass($error))->getShortName(), 'text' => $error->getMessage()];
    }
    echo json_encode($answer, JSON_THROW_ON_ERROR), "\n";
}
