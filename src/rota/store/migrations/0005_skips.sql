-- Due instants that did not become runs: neighbours of one reason in one row.

-- name: 0005_skips @sqlite
CREATE TABLE rota_skips (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  schedule TEXT NOT NULL,
  reason TEXT NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  count INTEGER NOT NULL,
  at INTEGER NOT NULL
);
CREATE INDEX rota_skips_schedule ON rota_skips (schedule, last);
CREATE INDEX rota_skips_at ON rota_skips (at);

-- name: 0005_skips @postgres
CREATE TABLE rota_skips (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  schedule TEXT NOT NULL,
  reason TEXT NOT NULL,
  first BIGINT NOT NULL,
  last BIGINT NOT NULL,
  count BIGINT NOT NULL,
  at BIGINT NOT NULL
);
CREATE INDEX rota_skips_schedule ON rota_skips (schedule, last);
CREATE INDEX rota_skips_at ON rota_skips (at);
