-- Locks. One is free where it has no token or has ended; whoever changes one that is held brings its token.

-- name: locks.take
INSERT INTO rota_locks (name, fence, token, holder, ends_at)
VALUES (:name, 1, :token, :holder, CAST(:now AS BIGINT) + CAST(:ttl AS BIGINT))
ON CONFLICT (name) DO UPDATE SET
  fence = rota_locks.fence + 1, token = excluded.token, holder = excluded.holder, ends_at = excluded.ends_at
WHERE rota_locks.token IS NULL OR rota_locks.ends_at <= CAST(:now AS BIGINT)
RETURNING fence

-- name: locks.extend
UPDATE rota_locks SET ends_at = CAST(:now AS BIGINT) + CAST(:ttl AS BIGINT)
WHERE name = :name AND token = :token
RETURNING fence

-- name: locks.release
UPDATE rota_locks SET token = NULL WHERE name = :name AND token = :token
RETURNING ends_at - CAST(:now AS BIGINT) AS left_over, coalesce(wanted_until, 0) > CAST(:now AS BIGINT) AS wanted

-- name: locks.want
UPDATE rota_locks SET
  wanted_until = CASE WHEN wanted_until > CAST(:now AS BIGINT) + CAST(:wait AS BIGINT) THEN wanted_until
                      ELSE CAST(:now AS BIGINT) + CAST(:wait AS BIGINT) END
WHERE name = :name
RETURNING token, holder, ends_at, ends_at - CAST(:now AS BIGINT) AS left_over

-- name: locks.get
SELECT token, holder, ends_at, ends_at - CAST(:now AS BIGINT) AS left_over FROM rota_locks WHERE name = :name
