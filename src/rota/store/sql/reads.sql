-- Looking, without changing anything.

-- name: reads.runs
SELECT * FROM rota_runs
WHERE id < CAST(:before AS BIGINT)
  AND (CAST(:state AS TEXT) IS NULL OR state = CAST(:state AS TEXT))
  AND (CAST(:task AS TEXT) IS NULL OR task = CAST(:task AS TEXT))
  AND (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
  AND (CAST(:worker AS TEXT) IS NULL OR worker = CAST(:worker AS TEXT))
  AND (CAST(:since AS BIGINT) IS NULL OR created_at >= CAST(:since AS BIGINT))
  AND (CAST(:until AS BIGINT) IS NULL OR created_at < CAST(:until AS BIGINT))
  AND (CAST(:text AS TEXT) IS NULL OR lower(task) LIKE lower(CAST(:text AS TEXT)) ESCAPE '!'
    OR lower(schedule) LIKE lower(CAST(:text AS TEXT)) ESCAPE '!'
    OR lower(unique_key) LIKE lower(CAST(:text AS TEXT)) ESCAPE '!'
    OR lower(error) LIKE lower(CAST(:text AS TEXT)) ESCAPE '!')
ORDER BY id DESC LIMIT CAST(:most AS BIGINT)

-- name: reads.runs_of
SELECT * FROM rota_runs
WHERE schedule = :schedule AND id < CAST(:before AS BIGINT)
  AND (CAST(:state AS TEXT) IS NULL OR state = CAST(:state AS TEXT))
  AND (CAST(:task AS TEXT) IS NULL OR task = CAST(:task AS TEXT))
  AND (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
  AND (CAST(:worker AS TEXT) IS NULL OR worker = CAST(:worker AS TEXT))
  AND (CAST(:since AS BIGINT) IS NULL OR created_at >= CAST(:since AS BIGINT))
  AND (CAST(:until AS BIGINT) IS NULL OR created_at < CAST(:until AS BIGINT))
  AND (CAST(:text AS TEXT) IS NULL OR lower(task) LIKE lower(CAST(:text AS TEXT)) ESCAPE '!'
    OR lower(schedule) LIKE lower(CAST(:text AS TEXT)) ESCAPE '!'
    OR lower(unique_key) LIKE lower(CAST(:text AS TEXT)) ESCAPE '!'
    OR lower(error) LIKE lower(CAST(:text AS TEXT)) ESCAPE '!')
ORDER BY id DESC LIMIT CAST(:most AS BIGINT)

-- name: reads.statistics
SELECT count(*) AS total, count(*) FILTER (WHERE state = 'succeeded') AS successful,
  CAST(coalesce(sum(finished_at - started_at) FILTER (WHERE state = 'succeeded'), 0) AS BIGINT) AS busy,
  CAST(:now AS BIGINT) - min(finished_at) AS oldest
FROM rota_runs
WHERE finished_at > CAST(:now AS BIGINT) - CAST(:period AS BIGINT) AND kept = 0 AND state IN ('succeeded', 'failed')
  AND (CAST(:task AS TEXT) IS NULL OR task = CAST(:task AS TEXT))
  AND (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
  AND (CAST(:schedule AS TEXT) IS NULL OR schedule = CAST(:schedule AS TEXT))

-- name: reads.states
SELECT queue, state, count(*) AS number, min(due) - CAST(:now AS BIGINT) AS oldest,
  count(*) FILTER (WHERE due <= CAST(:now AS BIGINT)) AS due
FROM (  -- each by its own index, so that the history does not count
  SELECT queue, state, due FROM rota_runs WHERE state = 'ready'
  UNION ALL SELECT queue, state, due FROM rota_runs WHERE state = 'running'
  UNION ALL SELECT queue, state, due FROM rota_runs WHERE state = 'waiting' AND gate IS NULL
  UNION ALL SELECT queue, state, due FROM rota_runs WHERE state = 'waiting' AND gate IS NOT NULL) AS under_way
GROUP BY queue, state ORDER BY queue, state

-- name: reads.pulse
SELECT (SELECT max(id) FROM rota_runs) AS newest,
  (SELECT max(finished_at) FROM rota_runs WHERE finished_at IS NOT NULL AND kept = 0) AS ended
