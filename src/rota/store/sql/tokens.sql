-- Tokens: of each only its hash is here. A name is one token's at a time, until it is revoked.

-- name: tokens.find
SELECT hash, name, role, created_at, expires_at, revoked_at, used_at,
  coalesce(used_at <= CAST(:now AS BIGINT) - CAST(:coarse AS BIGINT), TRUE) AS stale
FROM rota_tokens
WHERE hash = :hash AND revoked_at IS NULL AND coalesce(expires_at > CAST(:now AS BIGINT), TRUE)

-- name: tokens.make
INSERT INTO rota_tokens (hash, name, role, created_at, expires_at)
VALUES (:hash, :name, :role, CAST(:now AS BIGINT), CAST(:now AS BIGINT) + CAST(:length AS BIGINT))
ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
RETURNING hash, name, role, created_at, expires_at, revoked_at, used_at

-- name: tokens.make_first
INSERT INTO rota_tokens (hash, name, role, created_at)
SELECT :hash, :name, 'admin', CAST(:now AS BIGINT) WHERE NOT EXISTS (SELECT 1 FROM rota_tokens)
ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
RETURNING hash

-- name: tokens.list
SELECT hash, name, role, created_at, expires_at, revoked_at, used_at FROM rota_tokens ORDER BY created_at, hash

-- name: tokens.revoke
UPDATE rota_tokens SET revoked_at = CAST(:now AS BIGINT) WHERE name = :name AND revoked_at IS NULL
RETURNING hash, name, role, created_at, expires_at, revoked_at, used_at

-- name: tokens.use
UPDATE rota_tokens SET used_at = CAST(:now AS BIGINT)
WHERE hash = :hash AND coalesce(used_at <= CAST(:now AS BIGINT) - CAST(:coarse AS BIGINT), TRUE)
RETURNING hash
