-- Answers that are given again to who asks again with the same key. One that is older than :keep is as good as gone.

-- name: idempotency.get
SELECT request, status, headers, body FROM rota_idempotency
WHERE key = :key AND at > CAST(:now AS BIGINT) - CAST(:keep AS BIGINT)

-- name: idempotency.take
INSERT INTO rota_idempotency (key, request, status, headers, body, at)
VALUES (:key, :request, 0, '', '', CAST(:now AS BIGINT))
ON CONFLICT (key) DO UPDATE SET request = excluded.request, at = excluded.at
WHERE rota_idempotency.at <= CAST(:now AS BIGINT) - CAST(:keep AS BIGINT)
RETURNING key

-- name: idempotency.keep
UPDATE rota_idempotency SET status = :status, headers = :headers, body = :body WHERE key = :key

-- name: idempotency.sweep
DELETE FROM rota_idempotency WHERE key IN (
  SELECT key FROM rota_idempotency WHERE at <= CAST(:now AS BIGINT) - CAST(:keep AS BIGINT) ORDER BY at LIMIT :most
)
RETURNING key
