-- A unique key that is asked for is found at once, however long the history is.

-- name: 0006_unique
CREATE INDEX rota_runs_key ON rota_runs (unique_key, id) WHERE unique_key IS NOT NULL;
