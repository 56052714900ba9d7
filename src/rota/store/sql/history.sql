-- Old history. Attempts go with their runs. A run that is under way has no end, and is not touched.
-- A schedule keeps its newest runs however old they are: those are marked, so that nobody comes across them again, and
-- go when newer ones have become old.

-- name: history.old @sqlite
SELECT id, schedule FROM rota_runs
WHERE finished_at < :now - :keep AND kept = 0 AND state IN ('succeeded', 'failed', 'cancelled')
ORDER BY finished_at LIMIT :most

-- name: history.old @postgres
SELECT id, schedule FROM rota_runs
WHERE finished_at < CAST(:now AS BIGINT) - CAST(:keep AS BIGINT) AND kept = 0
  AND state IN ('succeeded', 'failed', 'cancelled')
ORDER BY finished_at LIMIT :most FOR UPDATE SKIP LOCKED

-- name: history.remove @sqlite
DELETE FROM rota_runs WHERE id = :id

-- name: history.remove @postgres
DELETE FROM rota_runs WHERE id = ANY(:id::bigint[])

-- name: history.mark @sqlite
UPDATE rota_runs SET kept = 1 WHERE id = :id

-- name: history.mark @postgres
UPDATE rota_runs SET kept = 1 WHERE id = ANY(:id::bigint[])

-- name: history.remove_runs @sqlite
DELETE FROM rota_runs WHERE schedule = :key AND kept = 1 AND state IN ('succeeded', 'failed', 'cancelled')
  AND id < (SELECT id FROM rota_runs WHERE schedule = :key ORDER BY id DESC LIMIT 1 OFFSET :newest - 1)

-- name: history.remove_runs @postgres
DELETE FROM rota_runs USING unnest(:key::text[]) AS swept (key)
WHERE schedule = swept.key AND kept = 1 AND state IN ('succeeded', 'failed', 'cancelled')
  AND id < (SELECT id FROM rota_runs WHERE schedule = swept.key ORDER BY id DESC LIMIT 1 OFFSET :newest::bigint - 1)

-- name: history.remove_skips @sqlite
DELETE FROM rota_skips WHERE schedule = :key AND at < :now - :keep
  AND id < (SELECT id FROM rota_skips WHERE schedule = :key ORDER BY id DESC LIMIT 1 OFFSET :newest - 1)

-- name: history.remove_skips @postgres
DELETE FROM rota_skips USING unnest(:key::text[]) AS swept (key)
WHERE schedule = swept.key AND at < CAST(:now AS BIGINT) - CAST(:keep AS BIGINT)
  AND id < (SELECT id FROM rota_skips WHERE schedule = swept.key ORDER BY id DESC LIMIT 1 OFFSET :newest::bigint - 1)
