-- Old history: ended runs with their attempts, skips, revisions. A run that is under way has no end, and is not touched.
-- A schedule keeps its newest of each however old they are: those are marked, so that nobody comes across them again, and
-- go when newer ones have become old. One that was removed keeps nothing beyond the age.
-- A run goes only when its hour has been summed up.

-- name: history.old @sqlite
SELECT id, schedule FROM rota_runs
WHERE finished_at < min(:now - :keep, coalesce((SELECT through FROM rota_summed), 0)) AND kept = 0
  AND state IN ('succeeded', 'failed', 'cancelled')
ORDER BY finished_at LIMIT :most

-- name: history.old @postgres
SELECT id, schedule FROM rota_runs
WHERE finished_at < least(CAST(:now AS BIGINT) - CAST(:keep AS BIGINT), coalesce((SELECT through FROM rota_summed), 0))
  AND kept = 0 AND state IN ('succeeded', 'failed', 'cancelled')
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
  AND (NOT EXISTS (SELECT 1 FROM rota_schedules WHERE key = :key)
    OR id < (SELECT id FROM rota_runs WHERE schedule = :key ORDER BY id DESC LIMIT 1 OFFSET :newest - 1))

-- name: history.remove_runs @postgres
DELETE FROM rota_runs USING unnest(:key::text[]) AS swept (key)
WHERE schedule = swept.key AND kept = 1 AND state IN ('succeeded', 'failed', 'cancelled')
  AND (NOT EXISTS (SELECT 1 FROM rota_schedules WHERE rota_schedules.key = swept.key)
    OR id < (SELECT id FROM rota_runs WHERE schedule = swept.key ORDER BY id DESC LIMIT 1 OFFSET :newest::bigint - 1))

-- name: history.old_skips @sqlite
SELECT id, schedule FROM rota_skips WHERE at < :now - :keep AND kept = 0 ORDER BY at LIMIT :most

-- name: history.old_skips @postgres
SELECT id, schedule FROM rota_skips WHERE at < CAST(:now AS BIGINT) - CAST(:keep AS BIGINT) AND kept = 0
ORDER BY at LIMIT :most FOR UPDATE SKIP LOCKED

-- name: history.mark_skips @sqlite
UPDATE rota_skips SET kept = 1 WHERE id = :id

-- name: history.mark_skips @postgres
UPDATE rota_skips SET kept = 1 WHERE id = ANY(:id::bigint[])

-- name: history.remove_skips @sqlite
DELETE FROM rota_skips WHERE schedule = :key AND kept = 1 AND at < :now - :keep
  AND (NOT EXISTS (SELECT 1 FROM rota_schedules WHERE key = :key)
    OR id < (SELECT id FROM rota_skips WHERE schedule = :key ORDER BY id DESC LIMIT 1 OFFSET :newest - 1))

-- name: history.remove_skips @postgres
DELETE FROM rota_skips USING unnest(:key::text[]) AS swept (key)
WHERE schedule = swept.key AND kept = 1 AND at < CAST(:now AS BIGINT) - CAST(:keep AS BIGINT)
  AND (NOT EXISTS (SELECT 1 FROM rota_schedules WHERE rota_schedules.key = swept.key)
    OR id < (SELECT id FROM rota_skips WHERE schedule = swept.key ORDER BY id DESC LIMIT 1 OFFSET :newest::bigint - 1))

-- name: history.old_revisions @sqlite
SELECT version AS id, schedule FROM rota_revisions WHERE at < :now - :keep AND kept = 0 ORDER BY at LIMIT :most

-- name: history.old_revisions @postgres
SELECT version AS id, schedule FROM rota_revisions WHERE at < CAST(:now AS BIGINT) - CAST(:keep AS BIGINT) AND kept = 0
ORDER BY at LIMIT :most FOR UPDATE SKIP LOCKED

-- name: history.mark_revisions @sqlite
UPDATE rota_revisions SET kept = 1 WHERE schedule = :schedule AND version = :id

-- name: history.mark_revisions @postgres
UPDATE rota_revisions SET kept = 1 FROM unnest(:id::bigint[], :schedule::text[]) AS swept (id, schedule)
WHERE rota_revisions.schedule = swept.schedule AND version = swept.id

-- name: history.remove_revisions @sqlite
DELETE FROM rota_revisions WHERE schedule = :key AND kept = 1
  AND (NOT EXISTS (SELECT 1 FROM rota_schedules WHERE key = :key)
    OR version < (SELECT version FROM rota_revisions WHERE schedule = :key ORDER BY version DESC LIMIT 1 OFFSET :newest - 1))

-- name: history.remove_revisions @postgres
DELETE FROM rota_revisions USING unnest(:key::text[]) AS swept (key)
WHERE schedule = swept.key AND kept = 1
  AND (NOT EXISTS (SELECT 1 FROM rota_schedules WHERE rota_schedules.key = swept.key)
    OR version < (SELECT version FROM rota_revisions WHERE schedule = swept.key
                  ORDER BY version DESC LIMIT 1 OFFSET :newest::bigint - 1))
