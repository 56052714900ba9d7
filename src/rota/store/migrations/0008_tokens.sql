-- Who may ask the server: of a token only its hash is kept. A name is one token's at a time.
-- Answers that are given again to who asks again with the same key, and what the server signs with.

-- name: 0008_tokens
CREATE TABLE rota_tokens (
  hash TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('read', 'operate', 'admin')),
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT,
  used_at BIGINT
);
CREATE UNIQUE INDEX rota_tokens_name ON rota_tokens (name) WHERE revoked_at IS NULL;
CREATE TABLE rota_idempotency (
  key TEXT PRIMARY KEY,
  request TEXT NOT NULL,
  status INTEGER NOT NULL,
  headers TEXT NOT NULL,
  body TEXT NOT NULL,
  at BIGINT NOT NULL
);
CREATE INDEX rota_idempotency_at ON rota_idempotency (at);
CREATE TABLE rota_secrets (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
