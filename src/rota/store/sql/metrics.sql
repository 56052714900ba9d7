-- What is read when metrics are asked for: the same for every instance.

-- name: metrics.schedules
SELECT key, started, next FROM rota_schedules ORDER BY key LIMIT CAST(:most AS BIGINT)

-- name: metrics.soonest
SELECT key, task, next FROM rota_schedules WHERE wake IS NOT NULL ORDER BY wake LIMIT CAST(:most AS BIGINT)

-- name: metrics.late
SELECT count(*) AS number FROM rota_schedules WHERE wake <= CAST(:now AS BIGINT) - CAST(:late AS BIGINT)

-- name: metrics.waiting
SELECT CASE WHEN rota_runs.gate LIKE '@%' THEN 'schedule' WHEN rota_lines.gate LIKE '!%' THEN 'worker' ELSE 'limit' END AS why,
  count(*) AS number
FROM rota_runs LEFT JOIN rota_lines ON rota_lines.line = rota_runs.gate
WHERE state = 'waiting' AND rota_runs.gate IS NOT NULL GROUP BY 1

-- name: metrics.workers
SELECT count(*) FILTER (WHERE lease >= CAST(:now AS BIGINT) AND draining = 0) AS alive,
  count(*) FILTER (WHERE lease >= CAST(:now AS BIGINT) AND draining = 1) AS draining,
  count(*) FILTER (WHERE lease < CAST(:now AS BIGINT)) AS silent,
  coalesce(sum(slots) FILTER (WHERE lease >= CAST(:now AS BIGINT) AND draining = 0), 0) AS slots
FROM rota_workers

-- name: metrics.troubles
SELECT kind, count(*) AS number FROM rota_troubles WHERE over IS NULL GROUP BY kind
