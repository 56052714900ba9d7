-- Runs, attempts, workers.

-- name: 0001_runs @sqlite
CREATE TABLE rota_runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  task TEXT NOT NULL,
  queue TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'ready', 'running', 'succeeded', 'failed', 'cancelled')),
  priority INTEGER NOT NULL,
  due INTEGER NOT NULL,
  args TEXT NOT NULL,
  unique_key TEXT,
  gate TEXT,
  limits TEXT,
  attempt INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  lost INTEGER NOT NULL DEFAULT 0,
  max_lost INTEGER NOT NULL,
  worker TEXT,
  cancel TEXT,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  result TEXT,
  error TEXT,
  progress TEXT
);
CREATE INDEX rota_runs_ready ON rota_runs (queue, priority DESC, due, id) WHERE state = 'ready';
CREATE INDEX rota_runs_waiting ON rota_runs (due) WHERE state = 'waiting' AND gate IS NULL;
CREATE INDEX rota_runs_gate ON rota_runs (gate, priority DESC, due, id) WHERE state = 'waiting' AND gate IS NOT NULL;
CREATE INDEX rota_runs_running ON rota_runs (worker) WHERE state = 'running';
CREATE UNIQUE INDEX rota_runs_unique ON rota_runs (unique_key)
  WHERE unique_key IS NOT NULL AND state IN ('waiting', 'ready', 'running');
CREATE INDEX rota_runs_finished ON rota_runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE TABLE rota_attempts (
  run INTEGER NOT NULL REFERENCES rota_runs (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  worker TEXT,
  started_at INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('succeeded', 'failed', 'retry', 'snoozed', 'cancelled', 'lost')),
  error TEXT,
  PRIMARY KEY (run, number)
) WITHOUT ROWID;
CREATE TABLE rota_workers (
  id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  queues TEXT NOT NULL,
  slots INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  lease INTEGER NOT NULL,
  draining INTEGER NOT NULL DEFAULT 0
);

-- name: 0001_runs @postgres
CREATE TABLE rota_runs (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  task TEXT NOT NULL,
  queue TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'ready', 'running', 'succeeded', 'failed', 'cancelled')),
  priority SMALLINT NOT NULL,
  due BIGINT NOT NULL,
  args TEXT NOT NULL,
  unique_key TEXT,
  gate TEXT,
  limits TEXT,
  attempt INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  lost INTEGER NOT NULL DEFAULT 0,
  max_lost INTEGER NOT NULL,
  worker TEXT,
  cancel TEXT,
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  finished_at BIGINT,
  result TEXT,
  error TEXT,
  progress TEXT
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX rota_runs_ready ON rota_runs (queue, priority DESC, due, id) WHERE state = 'ready';
CREATE INDEX rota_runs_waiting ON rota_runs (due) WHERE state = 'waiting' AND gate IS NULL;
CREATE INDEX rota_runs_gate ON rota_runs (gate, priority DESC, due, id) WHERE state = 'waiting' AND gate IS NOT NULL;
CREATE INDEX rota_runs_running ON rota_runs (worker) WHERE state = 'running';
CREATE UNIQUE INDEX rota_runs_unique ON rota_runs (unique_key)
  WHERE unique_key IS NOT NULL AND state IN ('waiting', 'ready', 'running');
CREATE INDEX rota_runs_finished ON rota_runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE TABLE rota_attempts (
  run BIGINT NOT NULL REFERENCES rota_runs (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  worker TEXT,
  started_at BIGINT NOT NULL,
  finished_at BIGINT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('succeeded', 'failed', 'retry', 'snoozed', 'cancelled', 'lost')),
  error TEXT,
  PRIMARY KEY (run, number)
);
CREATE TABLE rota_workers (
  id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  queues TEXT NOT NULL,
  slots INTEGER NOT NULL,
  started_at BIGINT NOT NULL,
  lease BIGINT NOT NULL,
  draining INTEGER NOT NULL DEFAULT 0
);
