-- Looking at schedules, without changing anything.

-- name: schedules.get
SELECT * FROM rota_schedules WHERE key = :key

-- name: schedules.list
SELECT * FROM rota_schedules
WHERE key > CAST(:after AS TEXT)
  AND (CAST(:state AS TEXT) IS NULL OR state = CAST(:state AS TEXT))
  AND (CAST(:task AS TEXT) IS NULL OR task = CAST(:task AS TEXT))
  AND (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
  AND (CAST(:app AS TEXT) IS NULL OR app = CAST(:app AS TEXT))
  AND (CAST(:text AS TEXT) IS NULL OR lower(key) LIKE lower(CAST(:text AS TEXT)) ESCAPE '!'
    OR lower(task) LIKE lower(CAST(:text AS TEXT)) ESCAPE '!'
    OR lower(description) LIKE lower(CAST(:text AS TEXT)) ESCAPE '!')
  AND (CAST(:tag AS TEXT) IS NULL OR EXISTS (
    SELECT 1 FROM rota_tags WHERE rota_tags.tag = CAST(:tag AS TEXT) AND rota_tags.schedule = rota_schedules.key))
  -- Not by a range: how keys are ordered is up to the database's collation.
  AND (CAST(:prefix AS TEXT) IS NULL OR substr(key, 1, length(CAST(:prefix AS TEXT))) = CAST(:prefix AS TEXT))
ORDER BY key LIMIT CAST(:most AS BIGINT)

-- name: schedules.declared
SELECT key FROM rota_schedules WHERE declared = 1 AND app = :app AND state <> 'retired'

-- name: schedules.parked
SELECT key, app, task, args FROM rota_schedules WHERE state = 'parked' ORDER BY key

-- name: schedules.counts
SELECT state, count(*) AS number FROM rota_schedules GROUP BY state ORDER BY state

-- name: schedules.status
SELECT
  (SELECT min(next) FROM rota_schedules WHERE wake IS NOT NULL) AS next_due,
  (SELECT count(*) FROM rota_schedules WHERE wake <= CAST(:now AS BIGINT) - CAST(:late AS BIGINT)) AS overdue,
  (SELECT CAST(:now AS BIGINT) - min(wake) FROM rota_schedules WHERE wake IS NOT NULL) AS oldest,
  (SELECT count(*) FROM rota_schedules WHERE state = 'active' AND failures >= CAST(:failures AS BIGINT)) AS failing

-- name: schedules.failing
SELECT * FROM rota_schedules WHERE state = 'active' AND failures >= CAST(:failures AS BIGINT)
ORDER BY failures DESC, key LIMIT CAST(:most AS BIGINT)

-- name: schedules.upcoming
SELECT * FROM rota_schedules WHERE wake IS NOT NULL AND next IS NOT NULL ORDER BY wake LIMIT CAST(:most AS BIGINT)

-- name: schedules.pending @sqlite
SELECT DISTINCT schedule FROM json_each(:rows) CROSS JOIN rota_runs
WHERE schedule = json_extract(value, '$[0]') AND state IN ('waiting', 'ready', 'running') AND state <> 'running'

-- name: schedules.pending @postgres
SELECT DISTINCT schedule FROM rota_runs
WHERE schedule = ANY(:key::text[]) AND state IN ('waiting', 'ready', 'running') AND state <> 'running'

-- name: schedules.busy
SELECT rule, policies, min(next) AS next, count(*) AS number FROM rota_schedules
WHERE wake IS NOT NULL AND wake < CAST(:until AS BIGINT) AND next IS NOT NULL
GROUP BY rule, policies, next / 60000000 ORDER BY 3 LIMIT CAST(:most AS BIGINT)

-- name: schedules.revisions
SELECT * FROM rota_revisions WHERE schedule = :key AND version < CAST(:before AS BIGINT)
ORDER BY version DESC LIMIT CAST(:most AS BIGINT)

-- name: schedules.history
SELECT id, schedule, state, kind, nominal, created_at, started_at, finished_at, error FROM rota_runs
WHERE schedule = :key AND nominal < CAST(:before AS BIGINT) ORDER BY nominal DESC, id DESC LIMIT CAST(:most AS BIGINT)

-- name: schedules.history_at
SELECT id, schedule, state, kind, nominal, created_at, started_at, finished_at, error FROM rota_runs
WHERE schedule = :key AND nominal = :at ORDER BY id DESC

-- name: schedules.skips
SELECT schedule, reason, first, last, count, at FROM rota_skips
WHERE schedule = :key AND last < CAST(:before AS BIGINT) ORDER BY last DESC, id DESC LIMIT CAST(:most AS BIGINT)

-- name: schedules.all_runs
SELECT id, schedule, state, kind, nominal, created_at, started_at, finished_at, error FROM rota_runs
WHERE schedule IS NOT NULL AND id < CAST(:before AS BIGINT) ORDER BY id DESC LIMIT CAST(:most AS BIGINT)

-- name: schedules.new_runs
SELECT id, schedule, state, kind, nominal, created_at, started_at, finished_at, error FROM rota_runs
WHERE schedule = :key AND id < CAST(:before AS BIGINT) ORDER BY id DESC LIMIT CAST(:most AS BIGINT)

-- name: schedules.all_skips
SELECT id, schedule, reason, first, last, count, at FROM rota_skips
WHERE id < CAST(:before AS BIGINT) AND (CAST(:reason AS TEXT) IS NULL OR reason = CAST(:reason AS TEXT))
ORDER BY id DESC LIMIT CAST(:most AS BIGINT)

-- name: schedules.new_skips
SELECT id, schedule, reason, first, last, count, at FROM rota_skips
WHERE schedule = :key AND id < CAST(:before AS BIGINT) AND (CAST(:reason AS TEXT) IS NULL OR reason = CAST(:reason AS TEXT))
ORDER BY id DESC LIMIT CAST(:most AS BIGINT)

-- name: schedules.run_at
SELECT id, schedule, state, kind, nominal, created_at, started_at, finished_at, error FROM rota_runs
WHERE schedule = :key AND nominal = :at ORDER BY id LIMIT 1

-- name: schedules.skip_at
SELECT schedule, reason, first, last, count, at FROM rota_skips
WHERE schedule = :key AND last >= CAST(:at AS BIGINT) AND first <= CAST(:at AS BIGINT) ORDER BY last

-- name: schedules.rule_at
SELECT version, at, what, changes,
  version = (SELECT min(version) FROM rota_revisions WHERE schedule = :key) AS oldest FROM rota_revisions
WHERE schedule = :key AND at > CAST(:at AS BIGINT)
  AND (what IN ('changed', 'made', 'removed')
    OR version = (SELECT min(version) FROM rota_revisions WHERE schedule = :key)) ORDER BY version
