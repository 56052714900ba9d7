-- Limits and admission. One admission at a time decides; whoever ends a run only touches what that run took.
--
-- rota_taken: a holder has a slot of a key while free_at is null; then the key rests until free_at. A holder is a run,
-- or the negative number of a hold, or 0 for a line that keeps what it has until it has all.
-- rota_lines: waiting runs of the same queue and the same keys, behind one gate: the key, or group, that lacks room;
-- '' is to be looked at, '!queue' waits for a worker of that queue.

-- name: limits.alone @postgres
SELECT pg_advisory_xact_lock(7303, 1)

-- name: limits.try_alone @postgres
SELECT pg_try_advisory_xact_lock(7303, 1)

-- name: limits.all
SELECT key, at_once, gap, keys_at_once FROM rota_limits ORDER BY key

-- name: limits.any
SELECT key FROM rota_limits LIMIT 1

-- name: limits.put
INSERT INTO rota_limits (key, at_once, gap, keys_at_once) VALUES (:key, :at_once, :gap, :keys_at_once)
ON CONFLICT (key) DO UPDATE SET at_once = excluded.at_once, gap = excluded.gap, keys_at_once = excluded.keys_at_once

-- name: limits.remove
DELETE FROM rota_limits WHERE key = :key RETURNING key

-- name: limits.arrivals @sqlite
SELECT id, task, queue, limits, priority, due FROM rota_runs
WHERE state = 'waiting' AND gate IS NULL AND due <= :now ORDER BY due LIMIT :most

-- name: limits.arrivals @postgres
SELECT id, task, queue, limits, priority, due FROM rota_runs
WHERE state = 'waiting' AND gate IS NULL AND due <= :now ORDER BY due LIMIT :most FOR UPDATE SKIP LOCKED

-- name: limits.place @sqlite
UPDATE rota_runs SET gate = :line WHERE id = :id

-- name: limits.place @postgres
UPDATE rota_runs SET gate = placed.line FROM unnest(:id::bigint[], :line::text[]) AS placed (id, line)
WHERE rota_runs.id = placed.id

-- name: limits.ready @sqlite
UPDATE rota_runs SET state = 'ready' WHERE id = :id AND state = 'waiting' RETURNING id, queue

-- name: limits.ready @postgres
UPDATE rota_runs SET state = 'ready' WHERE id = ANY(:id::bigint[]) AND state = 'waiting' RETURNING id, queue

-- name: limits.queues
SELECT DISTINCT queues FROM rota_workers WHERE lease >= CAST(:now AS BIGINT) AND draining = 0

-- name: lines.arrive @sqlite
INSERT INTO rota_lines (line, gate, priority, due, run) VALUES (:line, '', :priority, :due, :run)
ON CONFLICT (line) DO UPDATE SET priority = excluded.priority, due = excluded.due, run = excluded.run
WHERE (-excluded.priority, excluded.due, excluded.run) < (-rota_lines.priority, rota_lines.due, rota_lines.run)

-- name: lines.arrive @postgres
INSERT INTO rota_lines (line, gate, priority, due, run)
SELECT line, '', priority, due, run
FROM unnest(:line::text[], :priority::integer[], :due::bigint[], :run::bigint[]) AS arrived (line, priority, due, run)
ON CONFLICT (line) DO UPDATE SET priority = excluded.priority, due = excluded.due, run = excluded.run
WHERE (-excluded.priority, excluded.due, excluded.run) < (-rota_lines.priority, rota_lines.due, rota_lines.run)

-- name: lines.at @sqlite
SELECT * FROM rota_lines WHERE gate = :gate ORDER BY priority DESC, due, run LIMIT :most

-- name: lines.at @postgres
SELECT found.* FROM unnest(:gate::text[]) AS wanted (gate)
CROSS JOIN LATERAL (
  SELECT * FROM rota_lines WHERE rota_lines.gate = wanted.gate ORDER BY priority DESC, due, run LIMIT :most) AS found

-- name: lines.heads @sqlite
SELECT gate AS line, id, priority, due FROM rota_runs
WHERE state = 'waiting' AND gate = :line ORDER BY priority DESC, due, id LIMIT :most

-- name: lines.heads @postgres
SELECT found.* FROM unnest(:line::text[], :most::bigint[]) AS wanted (line, most)
CROSS JOIN LATERAL (
  SELECT gate AS line, id, priority, due FROM rota_runs
  WHERE state = 'waiting' AND gate = wanted.line ORDER BY priority DESC, due, id LIMIT wanted.most FOR UPDATE) AS found

-- name: lines.move @sqlite
UPDATE rota_lines SET gate = :gate, priority = :priority, due = :due, run = :run, passed = :passed, reserves = :reserves
WHERE line = :line

-- name: lines.move @postgres
UPDATE rota_lines SET gate = moved.gate, priority = moved.priority, due = moved.due, run = moved.run,
  passed = moved.passed, reserves = moved.reserves
FROM unnest(:line::text[], :gate::text[], :priority::integer[], :due::bigint[], :run::bigint[], :passed::integer[],
            :reserves::integer[]) AS moved (line, gate, priority, due, run, passed, reserves)
WHERE rota_lines.line = moved.line

-- name: lines.remove @sqlite
DELETE FROM rota_lines WHERE line = :line

-- name: lines.remove @postgres
DELETE FROM rota_lines WHERE line = ANY(:line::text[])

-- name: lines.reserving
SELECT key, EXISTS (SELECT 1 FROM rota_holds WHERE rota_holds.key = rota_taken.key AND until > CAST(:now AS BIGINT)) AS wanted
FROM rota_taken WHERE holder = 0 AND free_at IS NULL

-- name: lines.reserves
SELECT * FROM rota_lines WHERE reserves = 1

-- name: lines.unreserve
UPDATE rota_lines SET reserves = 0, passed = 0 WHERE reserves = 1

-- name: lines.any
SELECT line FROM rota_lines LIMIT 1

-- name: lines.next
SELECT EXISTS (SELECT 1 FROM rota_lines) AS waiting,
  (SELECT min(free_at) FROM rota_taken WHERE free_at IS NOT NULL) - CAST(:now AS BIGINT) AS wait

-- name: lines.reset
UPDATE rota_runs SET gate = NULL WHERE state = 'waiting' AND gate IS NOT NULL AND gate NOT LIKE '@%'

-- name: lines.clear
DELETE FROM rota_lines

-- name: lines.counts
SELECT rota_lines.gate, count(*) AS number FROM rota_lines JOIN rota_runs
  ON rota_runs.gate = rota_lines.line AND rota_runs.state = 'waiting' GROUP BY rota_lines.gate

-- name: lines.gate_of
SELECT rota_lines.gate FROM rota_runs JOIN rota_lines ON rota_lines.line = rota_runs.gate
WHERE rota_runs.id = :run AND rota_runs.state = 'waiting'

-- name: lines.forgotten
UPDATE rota_lines SET gate = ''
WHERE gate <> '' AND gate NOT LIKE '!%' AND gate NOT LIKE '%*'
  AND NOT EXISTS (SELECT 1 FROM rota_taken WHERE rota_taken.key = rota_lines.gate)
  AND NOT EXISTS (SELECT 1 FROM rota_holds WHERE rota_holds.key = rota_lines.gate)
RETURNING line

-- name: taken.rested
DELETE FROM rota_taken WHERE free_at <= CAST(:now AS BIGINT) RETURNING key

-- name: taken.clamp
-- A gap that was shortened counts at once; and a clock that was set back makes no key rest for longer than its gap.
UPDATE rota_taken SET free_at = CAST(:now AS BIGINT) + coalesce(
  (SELECT gap FROM rota_limits WHERE rota_limits.key = rota_taken.key),
  (SELECT gap FROM rota_limits WHERE rota_limits.key = rota_taken.family), 0)
WHERE free_at > CAST(:now AS BIGINT) + coalesce(
  (SELECT gap FROM rota_limits WHERE rota_limits.key = rota_taken.key),
  (SELECT gap FROM rota_limits WHERE rota_limits.key = rota_taken.family), 0) AND family IS DISTINCT FROM 'own'
RETURNING key

-- name: taken.counts
SELECT key, count(*) AS number FROM rota_taken WHERE free_at IS NULL AND holder <> 0 GROUP BY key

-- name: taken.uses @sqlite
SELECT :key AS key,
  (SELECT count(*) FROM rota_taken WHERE key = :key AND free_at IS NULL) AS busy,
  EXISTS (SELECT 1 FROM rota_taken WHERE key = :key AND free_at > :now) AS resting,
  EXISTS (SELECT 1 FROM rota_holds WHERE key = :key AND until > :now) AS wanted

-- name: taken.uses @postgres
SELECT asked.key,
  (SELECT count(*) FROM rota_taken WHERE rota_taken.key = asked.key AND free_at IS NULL) AS busy,
  EXISTS (SELECT 1 FROM rota_taken WHERE rota_taken.key = asked.key AND free_at > :now) AS resting,
  EXISTS (SELECT 1 FROM rota_holds WHERE rota_holds.key = asked.key AND until > :now) AS wanted
FROM unnest(:key::text[]) AS asked (key)

-- name: taken.family
SELECT DISTINCT key FROM rota_taken WHERE free_at IS NULL AND family = :family

-- name: taken.take @sqlite
INSERT INTO rota_taken (key, holder, family, taken_at) VALUES (:key, :holder, :family, :now)
ON CONFLICT (key, holder) DO UPDATE SET taken_at = excluded.taken_at, until = NULL, free_at = NULL

-- name: taken.take @postgres
INSERT INTO rota_taken (key, holder, family, taken_at)
SELECT key, holder, family, :now FROM unnest(:key::text[], :holder::bigint[], :family::text[]) AS new (key, holder, family)
ON CONFLICT (key, holder) DO UPDATE SET taken_at = excluded.taken_at, until = NULL, free_at = NULL

-- name: taken.end @sqlite
UPDATE rota_taken SET until = NULL, free_at = :now + coalesce(
  (SELECT gap FROM rota_limits WHERE rota_limits.key = rota_taken.key),
  (SELECT gap FROM rota_limits WHERE rota_limits.key = rota_taken.family), 0)
WHERE holder = :holder AND free_at IS NULL

-- name: taken.end @postgres
UPDATE rota_taken SET until = NULL, free_at = :now + coalesce(
  (SELECT gap FROM rota_limits WHERE rota_limits.key = rota_taken.key),
  (SELECT gap FROM rota_limits WHERE rota_limits.key = rota_taken.family), 0)
WHERE holder = ANY(:holder::bigint[]) AND free_at IS NULL

-- name: taken.drop @sqlite
UPDATE rota_taken SET free_at = 0 WHERE holder = :holder AND free_at IS NULL

-- name: taken.drop @postgres
UPDATE rota_taken SET free_at = 0 WHERE holder = ANY(:holder::bigint[]) AND free_at IS NULL

-- name: taken.unreserve
DELETE FROM rota_taken WHERE holder = 0

-- name: taken.left_behind
UPDATE rota_taken SET until = NULL, free_at = coalesce(until, CAST(:now AS BIGINT)) + coalesce(
  (SELECT gap FROM rota_limits WHERE rota_limits.key = rota_taken.key),
  (SELECT gap FROM rota_limits WHERE rota_limits.key = rota_taken.family), 0)
WHERE free_at IS NULL AND (
  until < CAST(:now AS BIGINT)
  OR holder > 0 AND NOT EXISTS (
    SELECT 1 FROM rota_runs WHERE rota_runs.id = rota_taken.holder AND rota_runs.state IN ('ready', 'running')))
RETURNING key

-- name: taken.unclaimed
-- CROSS: SQLite may otherwise begin with the runs, and go through them all.
SELECT DISTINCT rota_runs.id, rota_runs.gate FROM rota_taken CROSS JOIN rota_runs
WHERE rota_runs.id = rota_taken.holder AND rota_taken.free_at IS NULL AND rota_taken.taken_at < CAST(:now AS BIGINT) - CAST(:patience AS BIGINT)
  AND rota_runs.state = 'ready' AND rota_runs.gate IS NOT NULL
  AND EXISTS (SELECT 1 FROM rota_lines
              WHERE rota_lines.gate IN (rota_taken.key, rota_taken.family) AND rota_lines.line <> rota_runs.gate)

-- name: limits.take_back @sqlite
UPDATE rota_runs SET state = 'waiting' WHERE id = :id AND state = 'ready' RETURNING id

-- name: limits.take_back @postgres
UPDATE rota_runs SET state = 'waiting' WHERE id = ANY(:id::bigint[]) AND state = 'ready' RETURNING id

-- name: lines.last @sqlite
INSERT INTO rota_lines (line, gate, priority, due, run) VALUES (:line, '', -32768, :now, :run)
ON CONFLICT (line) DO UPDATE SET gate = '', priority = -32768, due = :now

-- name: lines.last @postgres
INSERT INTO rota_lines (line, gate, priority, due, run)
SELECT line, '', -32768, :now, run FROM unnest(:line::text[], :run::bigint[]) AS late (line, run)
ON CONFLICT (line) DO UPDATE SET gate = '', priority = -32768, due = excluded.due

-- name: limits.under
SELECT id, task, queue, limits, state, gate FROM rota_runs WHERE state = 'running'
UNION ALL SELECT id, task, queue, limits, state, gate FROM rota_runs WHERE state = 'ready' AND gate IS NOT NULL

-- name: limits.call_back
UPDATE rota_runs SET state = 'waiting'
WHERE state = 'ready' AND gate IS NULL
  AND (limits IS NOT NULL OR CAST(:every AS INTEGER) = 1 OR task = CAST(:task AS TEXT) OR queue = CAST(:queue AS TEXT))

-- name: holds.ask
INSERT INTO rota_holds (key, until) VALUES (:key, CAST(:now AS BIGINT) + CAST(:patience AS BIGINT)) RETURNING id

-- name: holds.ask_again
UPDATE rota_holds SET until = CAST(:now AS BIGINT) + CAST(:patience AS BIGINT) WHERE id = :id RETURNING id

-- name: holds.before
SELECT id FROM rota_holds WHERE key = :key AND id < :id AND until > CAST(:now AS BIGINT) LIMIT 1

-- name: holds.look
SELECT (SELECT count(*) FROM rota_holds WHERE key = :key AND id < :id AND until > CAST(:now AS BIGINT)) AS before,
  (SELECT count(*) FROM rota_taken WHERE key = :used AND free_at IS NULL) AS busy,
  (SELECT max(free_at) FROM rota_taken WHERE key IN (:key, :used) AND free_at IS NOT NULL) - CAST(:now AS BIGINT) AS rest

-- name: holds.remove
DELETE FROM rota_holds WHERE id = :id

-- name: holds.forget
DELETE FROM rota_holds WHERE until <= CAST(:now AS BIGINT) RETURNING key

-- name: holds.owned
SELECT key FROM rota_taken WHERE key = :key AND holder = :holder AND free_at IS NULL

-- name: holds.take
INSERT INTO rota_taken (key, holder, family, taken_at, until)
VALUES (:key, :holder, :family, CAST(:now AS BIGINT), CAST(:now AS BIGINT) + CAST(:lease AS BIGINT))

-- name: holds.renew
UPDATE rota_taken SET until = CAST(:now AS BIGINT) + CAST(:lease AS BIGINT)
WHERE key = :key AND holder = :holder AND free_at IS NULL RETURNING key

-- name: holds.rest
INSERT INTO rota_taken (key, holder, family, taken_at, free_at)
VALUES (:key, :holder, :family, CAST(:now AS BIGINT), CAST(:now AS BIGINT) + CAST(:gap AS BIGINT))
ON CONFLICT (key, holder) DO UPDATE SET until = NULL,
  free_at = CASE WHEN rota_taken.free_at > excluded.free_at THEN rota_taken.free_at ELSE excluded.free_at END
