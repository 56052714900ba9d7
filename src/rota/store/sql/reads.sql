-- Looking, without changing anything.

-- name: reads.runs
SELECT * FROM rota_runs
WHERE id < CAST(:before AS BIGINT)
  AND (CAST(:state AS TEXT) IS NULL OR state = CAST(:state AS TEXT))
  AND (CAST(:task AS TEXT) IS NULL OR task = CAST(:task AS TEXT))
  AND (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
ORDER BY id DESC LIMIT CAST(:most AS BIGINT)

-- name: reads.states
SELECT queue, state, count(*) AS number, min(due) - CAST(:now AS BIGINT) AS oldest,
  count(*) FILTER (WHERE due <= CAST(:now AS BIGINT)) AS due
FROM rota_runs
WHERE state IN ('waiting', 'ready', 'running') GROUP BY queue, state ORDER BY queue, state
