-- Old history. Attempts go with their runs. A run that is under way has no end, and is not touched.

-- name: history.sweep @sqlite
DELETE FROM rota_runs WHERE id IN (
  SELECT id FROM rota_runs WHERE finished_at < :now - :keep AND state IN ('succeeded', 'failed', 'cancelled')
  ORDER BY finished_at LIMIT :most)
RETURNING id

-- name: history.sweep @postgres
-- An array, which is made once and looked up by the primary key, however large the planner thinks that the table is.
DELETE FROM rota_runs WHERE id = ANY (ARRAY(
  SELECT id FROM rota_runs
  WHERE finished_at < CAST(:now AS BIGINT) - CAST(:keep AS BIGINT) AND state IN ('succeeded', 'failed', 'cancelled')
  ORDER BY finished_at LIMIT :most FOR UPDATE SKIP LOCKED))
RETURNING id
