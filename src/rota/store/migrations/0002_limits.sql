-- Limits: what people put, what is taken of them, and the lines of runs that wait for room.

-- name: 0002_limits @sqlite
CREATE TABLE rota_limits (
  key TEXT PRIMARY KEY,
  at_once INTEGER,
  gap INTEGER NOT NULL,
  keys_at_once INTEGER
) WITHOUT ROWID;
CREATE TABLE rota_taken (
  key TEXT NOT NULL,
  holder INTEGER NOT NULL,
  family TEXT,
  taken_at INTEGER NOT NULL,
  until INTEGER,
  free_at INTEGER,
  PRIMARY KEY (key, holder)
) WITHOUT ROWID;
CREATE INDEX rota_taken_holder ON rota_taken (holder);
CREATE INDEX rota_taken_family ON rota_taken (family, key) WHERE free_at IS NULL AND family IS NOT NULL;
CREATE INDEX rota_taken_free ON rota_taken (free_at) WHERE free_at IS NOT NULL;
CREATE TABLE rota_lines (
  line TEXT PRIMARY KEY,
  gate TEXT NOT NULL,
  priority INTEGER NOT NULL,
  due INTEGER NOT NULL,
  run INTEGER NOT NULL,
  passed INTEGER NOT NULL DEFAULT 0,
  reserves INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX rota_lines_gate ON rota_lines (gate, priority DESC, due, run);
CREATE INDEX rota_lines_reserves ON rota_lines (reserves) WHERE reserves = 1;
CREATE TABLE rota_holds (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL,
  until INTEGER NOT NULL
);
CREATE INDEX rota_holds_key ON rota_holds (key, id);

-- name: 0002_limits @postgres
CREATE TABLE rota_limits (
  key TEXT PRIMARY KEY,
  at_once INTEGER,
  gap BIGINT NOT NULL,
  keys_at_once INTEGER
);
CREATE TABLE rota_taken (
  key TEXT NOT NULL,
  holder BIGINT NOT NULL,
  family TEXT,
  taken_at BIGINT NOT NULL,
  until BIGINT,
  free_at BIGINT,
  PRIMARY KEY (key, holder)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX rota_taken_holder ON rota_taken (holder);
CREATE INDEX rota_taken_family ON rota_taken (family, key) WHERE free_at IS NULL AND family IS NOT NULL;
CREATE INDEX rota_taken_free ON rota_taken (free_at) WHERE free_at IS NOT NULL;
CREATE TABLE rota_lines (
  line TEXT PRIMARY KEY,
  gate TEXT NOT NULL,
  priority INTEGER NOT NULL,
  due BIGINT NOT NULL,
  run BIGINT NOT NULL,
  passed INTEGER NOT NULL DEFAULT 0,
  reserves INTEGER NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX rota_lines_gate ON rota_lines (gate, priority DESC, due, run);
CREATE INDEX rota_lines_reserves ON rota_lines (reserves) WHERE reserves = 1;
CREATE TABLE rota_holds (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key TEXT NOT NULL,
  until BIGINT NOT NULL
);
CREATE INDEX rota_holds_key ON rota_holds (key, id);
