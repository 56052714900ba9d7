-- Troubles: what somebody should know of. `told`: 0 nothing, 1 that it began, 2 that it is over, or nothing is to be told.

-- name: troubles.unwell @sqlite
-- What may be in trouble: its last run did not succeed, it is not fired, a run of it does not come to its end, or it was
-- in trouble when somebody looked last.
SELECT * FROM rota_schedules WHERE state = 'active' AND key IN (
  SELECT key FROM rota_schedules WHERE state = 'active' AND ended <> 'succeeded'
  UNION SELECT key FROM rota_schedules WHERE wake <= :now - :late
  UNION SELECT schedule FROM rota_runs
    WHERE schedule IS NOT NULL AND state IN ('waiting', 'ready', 'running') AND created_at <= :now - :late
  UNION SELECT substr(subject, 10) FROM rota_troubles WHERE over IS NULL AND subject LIKE 'schedule %')
ORDER BY key LIMIT :most

-- name: troubles.unwell @postgres
SELECT * FROM rota_schedules WHERE state = 'active' AND key = ANY(ARRAY(
  SELECT key FROM rota_schedules WHERE state = 'active' AND ended <> 'succeeded'
  UNION SELECT key FROM rota_schedules WHERE wake <= CAST(:now AS BIGINT) - :late::bigint
  UNION SELECT schedule FROM rota_runs
    WHERE schedule IS NOT NULL AND state IN ('waiting', 'ready', 'running')
      AND created_at <= CAST(:now AS BIGINT) - :late::bigint
  UNION SELECT substr(subject, 10) FROM rota_troubles WHERE over IS NULL AND subject LIKE 'schedule %'))
ORDER BY key LIMIT :most

-- name: troubles.let_go
-- When a schedule was let go on last, or got the rule that it has.
SELECT max(at) AS at FROM (
  SELECT max(at) AS at FROM rota_revisions WHERE schedule = :key AND what IN ('resumed', 'changed')
  UNION ALL SELECT max(last) FROM rota_skips WHERE schedule = :key AND reason IN ('paused', 'parked')) AS found

-- name: troubles.held
SELECT * FROM rota_schedules
WHERE state <> 'active' AND (state = 'parked' OR (state = 'paused' AND hold_by = 'rota' AND failures > 0))
ORDER BY key LIMIT CAST(:most AS BIGINT)

-- name: troubles.open
SELECT * FROM rota_troubles WHERE over IS NULL ORDER BY began, subject

-- name: troubles.list
SELECT * FROM rota_troubles
WHERE (over IS NULL OR CAST(:over AS INTEGER) = 1)
  AND (CAST(:began AS BIGINT) IS NULL OR began < CAST(:began AS BIGINT)
    OR (began = CAST(:began AS BIGINT) AND subject > CAST(:subject AS TEXT)))
ORDER BY began DESC, subject LIMIT CAST(:most AS BIGINT)

-- name: troubles.begin
INSERT INTO rota_troubles (subject, began, kind, said) VALUES (:subject, :now, :kind, :said) ON CONFLICT DO NOTHING

-- name: troubles.again
-- It is back before anybody heard that it was over: then it never was.
UPDATE rota_troubles SET over = NULL, kind = :kind, said = :said
WHERE subject = :subject AND over IS NOT NULL AND told = 1 AND claimed IS NULL
RETURNING subject

-- name: troubles.change
UPDATE rota_troubles SET kind = :kind, said = :said WHERE subject = :subject AND over IS NULL

-- name: troubles.end
-- What is over before anybody was told of it is told to nobody.
UPDATE rota_troubles SET over = :now, told = CASE WHEN told = 0 AND claimed IS NULL THEN 2 ELSE told END
WHERE subject = :subject AND over IS NULL

-- name: troubles.silent
INSERT INTO rota_troubles (subject, began, kind, said, wanted)
SELECT 'worker ' || id, CAST(:now AS BIGINT), 'silent', 'worker ' || id || ' went silent',
  (SELECT count(*) FROM rota_workers)
FROM rota_workers
WHERE (id = CAST(:id AS TEXT) OR (CAST(:id AS TEXT) IS NULL AND lease < CAST(:now AS BIGINT)))
  AND EXISTS (SELECT 1 FROM rota_schedules WHERE key = 'rota.alerts' AND state = 'active')
ON CONFLICT DO NOTHING

-- name: troubles.replaced
-- A silent worker's place is taken when there are as many as there were.
SELECT subject FROM rota_troubles
WHERE kind = 'silent' AND over IS NULL
  AND (began < CAST(:now AS BIGINT) - CAST(:longest AS BIGINT)
    OR wanted <= (SELECT count(*) FROM rota_workers WHERE lease >= CAST(:now AS BIGINT)))

-- name: troubles.claim @sqlite
UPDATE rota_troubles SET claimed = :now + :length, tries = tries + 1
WHERE (subject, began) IN (
  SELECT subject, began FROM rota_troubles
  WHERE told < 2 AND (claimed IS NULL OR claimed < :now) AND (told = 0 OR over IS NOT NULL) ORDER BY began LIMIT :most)
RETURNING *

-- name: troubles.claim @postgres
WITH picked AS MATERIALIZED (
  SELECT subject, began FROM rota_troubles
  WHERE told < 2 AND (claimed IS NULL OR claimed < CAST(:now AS BIGINT)) AND (told = 0 OR over IS NOT NULL)
  ORDER BY began LIMIT :most::bigint FOR UPDATE SKIP LOCKED)
UPDATE rota_troubles SET claimed = CAST(:now AS BIGINT) + :length::bigint, tries = tries + 1 FROM picked
WHERE rota_troubles.subject = picked.subject AND rota_troubles.began = picked.began
RETURNING rota_troubles.*

-- name: troubles.told
UPDATE rota_troubles SET claimed = NULL, told = :told WHERE subject = :subject AND began = :began

-- name: troubles.untold
UPDATE rota_troubles SET claimed = NULL WHERE subject = :subject AND began = :began

-- name: troubles.old
DELETE FROM rota_troubles WHERE over < CAST(:now AS BIGINT) - CAST(:keep AS BIGINT) AND told = 2
