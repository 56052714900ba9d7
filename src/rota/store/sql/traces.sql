-- The traces that runs were enqueued in: of most runs none.

-- name: traces.insert @sqlite
INSERT INTO rota_traces (run, trace) VALUES (:run, :trace)

-- name: traces.insert @postgres
INSERT INTO rota_traces (run, trace) SELECT * FROM unnest(:run::bigint[], :trace::text[])

-- name: traces.of @sqlite
SELECT rota_traces.run, trace FROM json_each(:rows) CROSS JOIN rota_traces WHERE rota_traces.run = json_extract(value, '$[0]')

-- name: traces.of @postgres
SELECT run, trace FROM rota_traces WHERE run = ANY(:run::bigint[])
