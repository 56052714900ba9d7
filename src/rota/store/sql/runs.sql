-- The life of a run. What may come from somebody who lost his lease is fenced by (run, attempt, worker).

-- name: runs.insert @sqlite
INSERT INTO rota_runs (task, queue, state, priority, due, args, unique_key, limits, max_lost, created_at)
VALUES (:task, :queue, CASE WHEN coalesce(:at, :now) + :delay > :now OR EXISTS (
    SELECT 1 FROM rota_limits WHERE :limits IS NOT NULL OR key IN ('task:*', 'queue:*', 'task:' || :task, 'queue:' || :queue))
  THEN 'waiting' ELSE 'ready' END,
  :priority, coalesce(:at, :now) + :delay, :args, :unique_key, :limits, :max_lost, :now)

-- name: runs.insert @postgres
INSERT INTO rota_runs (task, queue, state, priority, due, args, unique_key, limits, max_lost, created_at)
SELECT task, queue, CASE WHEN coalesce(at, :now) + delay > :now OR EXISTS (
    SELECT 1 FROM rota_limits WHERE new.limits IS NOT NULL OR key IN ('task:*', 'queue:*', 'task:' || new.task, 'queue:' || new.queue))
  THEN 'waiting' ELSE 'ready' END,
  priority, coalesce(at, :now) + delay, args, unique_key, limits, max_lost, :now
FROM unnest(:task::text[], :queue::text[], :priority::smallint[], :delay::bigint[], :at::bigint[], :args::text[],
            :unique_key::text[], :limits::text[], :max_lost::integer[])
  WITH ORDINALITY AS new (task, queue, priority, delay, at, args, unique_key, limits, max_lost, number)
ORDER BY number
RETURNING id

-- name: runs.insert_alike @sqlite
INSERT INTO rota_runs (task, queue, state, priority, due, args, limits, max_lost, created_at)
SELECT :task, :queue, CASE WHEN :delay > 0 OR EXISTS (
    SELECT 1 FROM rota_limits WHERE :limits IS NOT NULL OR key IN ('task:*', 'queue:*', 'task:' || :task, 'queue:' || :queue))
  THEN 'waiting' ELSE 'ready' END,
  :priority, :now + :delay, value, :limits, :max_lost, :now
FROM json_each(:args) ORDER BY json_each.key

-- name: runs.insert_alike @postgres
INSERT INTO rota_runs (task, queue, state, priority, due, args, limits, max_lost, created_at)
SELECT :task::text, :queue::text, CASE WHEN :delay::bigint > 0 OR EXISTS (
    SELECT 1 FROM rota_limits
    WHERE :limits::text IS NOT NULL OR key IN ('task:*', 'queue:*', 'task:' || :task::text, 'queue:' || :queue::text))
  THEN 'waiting' ELSE 'ready' END,
  :priority::smallint, :now + :delay::bigint, args, :limits::text, :max_lost::integer, :now
FROM unnest(:args::text[]) WITH ORDINALITY AS new (args, number) ORDER BY number
RETURNING id

-- name: runs.insert_one
INSERT INTO rota_runs (task, queue, state, priority, due, args, unique_key, limits, max_lost, created_at)
VALUES (:task, :queue,
  CASE WHEN coalesce(CAST(:at AS BIGINT), :now) + CAST(:delay AS BIGINT) > :now OR EXISTS (
    SELECT 1 FROM rota_limits WHERE CAST(:limits AS TEXT) IS NOT NULL OR key IN ('task:*', 'queue:*', 'task:' || CAST(:task AS TEXT), 'queue:' || CAST(:queue AS TEXT)))
  THEN 'waiting' ELSE 'ready' END,
  :priority, coalesce(CAST(:at AS BIGINT), :now) + CAST(:delay AS BIGINT), :args, :unique_key, :limits, :max_lost, :now)
RETURNING id, state, due, created_at

-- name: runs.last_id @sqlite
SELECT last_insert_rowid()

-- name: runs.lock_key @postgres
SELECT pg_advisory_xact_lock(7302, hashtext(:unique_key))

-- name: runs.twin_under_way
SELECT * FROM rota_runs WHERE unique_key = :unique_key AND state IN ('waiting', 'ready', 'running') LIMIT 1

-- name: runs.twin
SELECT * FROM rota_runs
WHERE unique_key = :unique_key
  AND (state IN ('waiting', 'ready', 'running') OR created_at > CAST(:now AS BIGINT) - CAST(:period AS BIGINT))
ORDER BY id DESC LIMIT 1

-- name: runs.claim @sqlite
UPDATE rota_runs SET state = 'running', attempt = attempt + 1, worker = :worker, started_at = :now, progress = NULL
WHERE id IN (
  SELECT id FROM (
    SELECT id, gate, row_number() OVER (ORDER BY priority DESC, due, id) AS number FROM rota_runs
    WHERE state = 'ready' AND queue = :queue AND lost BETWEEN :lost_least AND :lost_most
    ORDER BY priority DESC, due, id LIMIT :most + :ahead)
  WHERE number <= :most OR gate IS NULL)
RETURNING id, task, args, attempt, failures, due, priority, queue, started_at, gate, lost, result, error,
  schedule, kind, nominal, timeout, retry

-- name: runs.claim @postgres
WITH picked AS MATERIALIZED (
  SELECT id, gate, priority, due FROM rota_runs
  WHERE state = 'ready' AND queue = :queue AND lost BETWEEN :lost_least AND :lost_most
  ORDER BY priority DESC, due, id LIMIT :most::bigint + :ahead::bigint FOR UPDATE SKIP LOCKED),
numbered AS (SELECT id, gate, row_number() OVER (ORDER BY priority DESC, due, id) AS number FROM picked)
-- By an array: a join might go through the whole table to find some hundreds.
UPDATE rota_runs SET state = 'running', attempt = attempt + 1, worker = :worker, started_at = :now, progress = NULL
WHERE id = ANY(ARRAY(SELECT id FROM numbered WHERE number <= :most::bigint OR gate IS NULL))
RETURNING id, task, args, attempt, failures, due, priority, queue, started_at, gate, lost, result, error,
  schedule, kind, nominal, timeout, retry

-- name: runs.settle @sqlite
UPDATE rota_runs SET
  state = CASE WHEN cancel IS NOT NULL AND ended.state = 'waiting' THEN 'cancelled' ELSE ended.state END,
  due = CASE WHEN ended.delay IS NULL THEN due ELSE :now + ended.delay END,
  finished_at = CASE WHEN ended.delay IS NULL OR cancel IS NOT NULL THEN :now END,
  failures = failures + ended.failed, result = coalesce(ended.result, rota_runs.result), error = ended.error,
  gate = CASE WHEN ended.delay IS NULL THEN gate END
FROM (
  SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS attempt, json_extract(value, '$[2]') AS state,
    json_extract(value, '$[3]') AS delay, json_extract(value, '$[4]') AS failed, json_extract(value, '$[5]') AS result,
    json_extract(value, '$[6]') AS error FROM json_each(:rows)) AS ended
-- +: not by the index of workers: for each run it would go through all that the worker holds.
WHERE rota_runs.id = ended.id AND rota_runs.attempt = ended.attempt AND +worker = :worker
  AND rota_runs.state = 'running'
RETURNING rota_runs.id, rota_runs.state, started_at, gate

-- name: runs.settle @postgres
UPDATE rota_runs SET
  state = CASE WHEN cancel IS NOT NULL AND ended.state = 'waiting' THEN 'cancelled' ELSE ended.state END,
  due = CASE WHEN ended.delay IS NULL THEN due ELSE :now + ended.delay END,
  finished_at = CASE WHEN ended.delay IS NULL OR cancel IS NOT NULL THEN :now END,
  failures = failures + ended.failed, result = coalesce(ended.result, rota_runs.result), error = ended.error,
  gate = CASE WHEN ended.delay IS NULL THEN gate END
FROM unnest(:id::bigint[], :attempt::integer[], :state::text[], :delay::bigint[], :failed::integer[], :result::text[],
            :error::text[]) AS ended (id, attempt, state, delay, failed, result, error)
-- CASE: by their numbers, and by nothing else. A planner may think that a worker holds one run, and go through them all.
WHERE rota_runs.id = ended.id AND CASE
  WHEN rota_runs.attempt = ended.attempt AND rota_runs.worker = :worker AND rota_runs.state = 'running' THEN true ELSE false END
RETURNING rota_runs.id, rota_runs.state, started_at, gate

-- name: runs.succeed @sqlite
UPDATE rota_runs SET state = 'succeeded', finished_at = :now, result = ended.result, error = NULL
FROM (SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS result FROM json_each(:rows)) AS ended
WHERE rota_runs.id = ended.id AND attempt = 1 AND +worker = :worker AND state = 'running'
RETURNING rota_runs.id, state, started_at, gate

-- name: runs.succeed @postgres
UPDATE rota_runs SET state = 'succeeded', finished_at = :now, result = ended.result, error = NULL
FROM unnest(:id::bigint[], :result::text[]) AS ended (id, result)
WHERE rota_runs.id = ended.id
  AND CASE WHEN attempt = 1 AND worker = :worker AND state = 'running' THEN true ELSE false END
RETURNING rota_runs.id, state, started_at, gate

-- name: attempts.insert @sqlite
INSERT INTO rota_attempts (run, number, worker, started_at, finished_at, outcome, error)
VALUES (:run, :number, :worker, :started_at, :now, :outcome, :error)

-- name: attempts.insert @postgres
INSERT INTO rota_attempts (run, number, worker, started_at, finished_at, outcome, error)
SELECT run, number, :worker, started_at, :now, outcome, error
FROM unnest(:run::bigint[], :number::integer[], :started_at::bigint[], :outcome::text[], :error::text[])
  AS ended (run, number, started_at, outcome, error)

-- name: runs.hand_back @sqlite
UPDATE rota_runs SET state = CASE WHEN cancel IS NULL THEN 'ready' ELSE 'cancelled' END,
  finished_at = CASE WHEN cancel IS NOT NULL THEN :now END, attempt = attempt - 1, worker = NULL, started_at = NULL
WHERE id = :id AND attempt = :attempt AND worker = :worker AND state = 'running'
RETURNING id, state, schedule

-- name: runs.hand_back @postgres
UPDATE rota_runs SET state = CASE WHEN cancel IS NULL THEN 'ready' ELSE 'cancelled' END,
  finished_at = CASE WHEN cancel IS NOT NULL THEN CAST(:now AS BIGINT) END, attempt = rota_runs.attempt - 1,
  worker = NULL, started_at = NULL
FROM unnest(:id::bigint[], :attempt::integer[]) AS held (id, attempt)
WHERE rota_runs.id = held.id
  AND CASE WHEN rota_runs.attempt = held.attempt AND worker = :worker AND state = 'running' THEN true ELSE false END
RETURNING rota_runs.id, state, schedule

-- name: runs.schedules_of
SELECT DISTINCT schedule FROM rota_runs WHERE worker = :worker AND state = 'running' AND schedule IS NOT NULL

-- name: runs.held_by
SELECT id, attempt FROM rota_runs WHERE worker = :worker AND state = 'running'

-- name: runs.admit @sqlite
UPDATE rota_runs SET state = 'ready'
WHERE id IN (SELECT id FROM rota_runs WHERE state = 'waiting' AND gate IS NULL AND due <= :now ORDER BY due LIMIT :most)
  AND NOT EXISTS (SELECT 1 FROM rota_limits)
RETURNING id, queue

-- name: runs.admit @postgres
WITH picked AS MATERIALIZED (
  SELECT id FROM rota_runs
  WHERE state = 'waiting' AND gate IS NULL AND due <= :now AND NOT EXISTS (SELECT 1 FROM rota_limits)
  ORDER BY due LIMIT :most FOR UPDATE SKIP LOCKED)
UPDATE rota_runs SET state = 'ready' FROM picked WHERE rota_runs.id = picked.id
RETURNING rota_runs.id, queue

-- name: runs.next_due
SELECT (SELECT min(due) FROM rota_runs WHERE state = 'waiting' AND gate IS NULL) - CAST(:now AS BIGINT) AS wait,
  EXISTS (SELECT 1 FROM rota_limits) AS limited

-- name: runs.get
SELECT * FROM rota_runs WHERE id = :id

-- name: attempts.of
SELECT * FROM rota_attempts WHERE run = :run ORDER BY number

-- name: runs.schedule_of
SELECT schedule FROM rota_runs WHERE id = :id

-- name: runs.cancel
UPDATE rota_runs SET
  cancel = CAST(:note AS TEXT),
  state = CASE WHEN state = 'running' THEN state ELSE 'cancelled' END,
  finished_at = CASE WHEN state = 'running' THEN NULL ELSE CAST(:now AS BIGINT) END
WHERE id = :id AND state IN ('waiting', 'ready', 'running') AND cancel IS NULL
RETURNING id, state, gate

-- name: runs.retry
UPDATE rota_runs SET
  state = CASE WHEN CAST(:gate AS TEXT) IS NOT NULL OR EXISTS (
    SELECT 1 FROM rota_limits WHERE rota_runs.limits IS NOT NULL OR key IN ('task:*', 'queue:*', 'task:' || rota_runs.task, 'queue:' || rota_runs.queue)) THEN 'waiting' ELSE 'ready' END,
  due = CAST(:now AS BIGINT), finished_at = NULL, cancel = NULL, failures = 0, lost = 0, kept = 0,
  gate = CAST(:gate AS TEXT)
WHERE id = :id AND state IN ('failed', 'cancelled', 'succeeded')
  AND NOT EXISTS (SELECT 1 FROM rota_runs AS twin WHERE twin.unique_key = rota_runs.unique_key
                  AND twin.state IN ('waiting', 'ready', 'running'))
RETURNING id, queue

-- name: runs.cancelled_of
SELECT id, attempt, cancel FROM rota_runs WHERE worker = :worker AND state = 'running' AND cancel IS NOT NULL

-- name: runs.progress
UPDATE rota_runs SET progress = :progress WHERE id = :id AND attempt = :attempt AND worker = :worker AND state = 'running'
RETURNING id

-- name: runs.lost
UPDATE rota_runs SET
  state = CASE WHEN cancel IS NOT NULL THEN 'cancelled'
               WHEN max_lost = 0 OR (lost >= max_lost AND CAST(:counts AS INTEGER) = 1) THEN 'failed' ELSE 'ready' END,
  finished_at = CASE WHEN cancel IS NOT NULL OR max_lost = 0 OR (lost >= max_lost AND CAST(:counts AS INTEGER) = 1)
                     THEN CAST(:now AS BIGINT) END,
  error = CASE WHEN max_lost = 0 THEN CAST(:forbidden AS TEXT)
               WHEN lost >= max_lost AND CAST(:counts AS INTEGER) = 1 THEN CAST(:too_often AS TEXT) ELSE error END,
  lost = lost + CAST(:counts AS INTEGER)
WHERE worker = :worker AND state = 'running'
RETURNING id, attempt, started_at, state, queue, gate, schedule, error

-- name: runs.orphans
SELECT DISTINCT worker FROM rota_runs
WHERE state = 'running' AND NOT EXISTS (SELECT 1 FROM rota_workers WHERE rota_workers.id = rota_runs.worker)
