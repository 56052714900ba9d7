-- What tasks logged, by run and attempt.

-- name: logs.insert @sqlite
INSERT INTO rota_logs (run, attempt, lines) VALUES (:run, :attempt, :lines) ON CONFLICT (run, attempt) DO NOTHING

-- name: logs.insert @postgres
INSERT INTO rota_logs (run, attempt, lines)
SELECT * FROM unnest(:run::bigint[], :attempt::integer[], :lines::text[]) ON CONFLICT (run, attempt) DO NOTHING

-- name: logs.of
SELECT attempt, lines FROM rota_logs WHERE run = :run ORDER BY attempt
