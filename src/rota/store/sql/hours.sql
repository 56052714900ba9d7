-- What ended, by the hour. The sweep sums up full hours; the rest is summed up by whoever asks.

-- name: hours.through
SELECT CAST(:now AS BIGINT) AS now, coalesce((SELECT through FROM rota_summed), 0) AS through

-- name: hours.first
SELECT min(finished_at) AS first FROM rota_runs
WHERE finished_at >= CAST(:after AS BIGINT) AND finished_at < CAST(:until AS BIGINT) AND kept = 0

-- name: hours.move
INSERT INTO rota_summed (id, through) VALUES (1, :to)
ON CONFLICT (id) DO UPDATE SET through = excluded.through WHERE rota_summed.through = CAST(:before AS BIGINT)
RETURNING through

-- name: hours.put @sqlite
INSERT INTO rota_hours (hour, task, queue, state, runs, busy, longest, waited)
VALUES (:hour, :task, :queue, :state, :runs, :busy, :longest, :waited)
ON CONFLICT (hour, task, queue, state) DO UPDATE SET runs = excluded.runs, busy = excluded.busy,
  longest = excluded.longest, waited = excluded.waited

-- name: hours.put @postgres
INSERT INTO rota_hours (hour, task, queue, state, runs, busy, longest, waited)
SELECT * FROM unnest(:hour::bigint[], :task::text[], :queue::text[], :state::text[], :runs::bigint[], :busy::bigint[],
  :longest::bigint[], :waited::bigint[])
ON CONFLICT (hour, task, queue, state) DO UPDATE SET runs = excluded.runs, busy = excluded.busy,
  longest = excluded.longest, waited = excluded.waited

-- name: hours.old
DELETE FROM rota_hours WHERE hour < CAST(:now AS BIGINT) - CAST(:keep AS BIGINT)

-- name: hours.list
SELECT hour, task, queue, state, runs, busy, longest, waited FROM rota_hours
WHERE hour >= CAST(:first AS BIGINT) AND hour < CAST(:until AS BIGINT)
  AND hour < coalesce((SELECT through FROM rota_summed), 0)
  AND (CAST(:task AS TEXT) IS NULL OR task = CAST(:task AS TEXT))
  AND (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
UNION ALL
SELECT finished_at / 3600000000 * 3600000000, task, queue, state, count(*),
  CAST(sum(finished_at - coalesce(started_at, finished_at)) AS BIGINT),
  max(finished_at - coalesce(started_at, finished_at)),
  CAST(sum(CASE WHEN started_at > due THEN started_at - due ELSE 0 END) AS BIGINT)
FROM rota_runs
WHERE finished_at >= CAST(:first AS BIGINT) AND finished_at < CAST(:until AS BIGINT)
  AND finished_at >= coalesce((SELECT through FROM rota_summed), 0) AND kept = 0
  AND state IN ('succeeded', 'failed', 'cancelled')
  AND (CAST(:task AS TEXT) IS NULL OR task = CAST(:task AS TEXT))
  AND (CAST(:queue AS TEXT) IS NULL OR queue = CAST(:queue AS TEXT))
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
