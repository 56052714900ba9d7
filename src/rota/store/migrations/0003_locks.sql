-- Locks. A row stays when its lock is released, so that its fence can never go back.

-- name: 0003_locks
CREATE TABLE rota_locks (
  name TEXT PRIMARY KEY,
  fence BIGINT NOT NULL,
  token TEXT,
  holder TEXT NOT NULL,
  ends_at BIGINT NOT NULL,
  wanted_until BIGINT
);
