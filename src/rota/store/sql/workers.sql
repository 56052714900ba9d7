-- Workers and their leases: a worker's lease covers every run that it claimed.

-- name: workers.insert
INSERT INTO rota_workers (id, host, pid, queues, slots, started_at, lease, length)
VALUES (:id, :host, :pid, :queues, :slots, :now, CAST(:now AS BIGINT) + CAST(:lease AS BIGINT), CAST(:lease AS BIGINT))

-- name: workers.renew
UPDATE rota_workers SET lease = CAST(:now AS BIGINT) + CAST(:lease AS BIGINT) WHERE id = :id RETURNING draining

-- name: workers.take_on
UPDATE rota_workers SET queues = :queues WHERE id = :id

-- name: workers.drain
UPDATE rota_workers SET draining = 1 WHERE id = :id RETURNING id

-- name: workers.remove
DELETE FROM rota_workers WHERE id = :id

-- name: workers.leases
-- Never more than a whole one, also where the clock was set back since it was renewed.
SELECT id, lease, lease - CAST(:now AS BIGINT) AS by_clock,
  CASE WHEN lease - CAST(:now AS BIGINT) > length THEN length ELSE lease - CAST(:now AS BIGINT) END AS left_over
FROM rota_workers ORDER BY id

-- name: workers.unrenewed @sqlite
SELECT id FROM rota_workers WHERE id = :id AND lease = :lease

-- name: workers.unrenewed @postgres
SELECT id FROM rota_workers WHERE id = :id AND lease = :lease FOR UPDATE SKIP LOCKED

-- name: workers.list
SELECT *, lease - CAST(:now AS BIGINT) AS left_over,
  (SELECT count(*) FROM rota_runs WHERE rota_runs.worker = rota_workers.id AND rota_runs.state = 'running') AS running
FROM rota_workers ORDER BY started_at, id
