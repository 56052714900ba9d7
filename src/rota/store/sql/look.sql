-- What there is to do, and when something will be, for whoever goes by steps.

-- name: look.events
SELECT (SELECT min(wake) FROM rota_schedules WHERE wake IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM rota_pause WHERE paused = 1)) AS wake,
  (SELECT min(due) FROM rota_runs WHERE state = 'waiting' AND gate IS NULL) AS due,
  (SELECT min(free_at) FROM rota_taken WHERE free_at IS NOT NULL AND EXISTS (SELECT 1 FROM rota_lines)) AS rested,
  (SELECT min(lease) FROM rota_workers WHERE id <> CAST(:worker AS TEXT)) AS lease

-- name: look.queues
SELECT queue, max(lost) AS lost FROM rota_runs WHERE state = 'ready' GROUP BY queue

-- name: look.unworked
SELECT DISTINCT gate FROM rota_lines WHERE gate LIKE '!%'
