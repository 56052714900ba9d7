-- Schedules, what became of their due instants, and every change of them.

-- name: 0004_schedules
CREATE TABLE rota_schedules (
  key TEXT PRIMARY KEY,
  app TEXT NOT NULL,
  declared INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'paused', 'parked', 'finished', 'retired')),
  task TEXT NOT NULL,
  args TEXT NOT NULL,
  rule TEXT NOT NULL,
  policies TEXT NOT NULL,
  queue TEXT NOT NULL,
  priority INTEGER NOT NULL,
  limits TEXT,
  max_lost INTEGER NOT NULL,
  timeout BIGINT,
  retry TEXT,
  tags TEXT NOT NULL,
  description TEXT NOT NULL,
  version INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  since BIGINT NOT NULL,
  through BIGINT,
  next BIGINT,
  wake BIGINT,
  decided_at BIGINT NOT NULL,
  due BIGINT,
  runs INTEGER NOT NULL DEFAULT 0,
  run_count BIGINT NOT NULL DEFAULT 0,
  started BIGINT,
  finished BIGINT,
  succeeded BIGINT,
  ended TEXT,
  error TEXT,
  failures INTEGER NOT NULL DEFAULT 0,
  asked BIGINT,
  average DOUBLE PRECISION,
  hold_reason TEXT,
  hold_at BIGINT,
  hold_until BIGINT,
  hold_by TEXT,
  hold_note TEXT
);
CREATE INDEX rota_schedules_wake ON rota_schedules (wake) WHERE wake IS NOT NULL;
CREATE INDEX rota_schedules_app ON rota_schedules (app, key) WHERE declared = 1;
CREATE INDEX rota_schedules_task ON rota_schedules (task, key);
CREATE INDEX rota_schedules_held ON rota_schedules (state, key) WHERE state <> 'active';
CREATE TABLE rota_tags (
  tag TEXT NOT NULL,
  schedule TEXT NOT NULL REFERENCES rota_schedules (key) ON DELETE CASCADE,
  PRIMARY KEY (tag, schedule)
);
CREATE INDEX rota_tags_schedule ON rota_tags (schedule);
CREATE TABLE rota_revisions (
  schedule TEXT NOT NULL,
  version INTEGER NOT NULL,
  at BIGINT NOT NULL,
  by_whom TEXT,
  what TEXT NOT NULL,
  note TEXT,
  changes TEXT NOT NULL,
  PRIMARY KEY (schedule, version)
);
CREATE TABLE rota_pause (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  paused INTEGER NOT NULL,
  at BIGINT NOT NULL,
  by_whom TEXT,
  note TEXT
);
ALTER TABLE rota_runs ADD COLUMN schedule TEXT;
ALTER TABLE rota_runs ADD COLUMN kind TEXT;
ALTER TABLE rota_runs ADD COLUMN nominal BIGINT;
ALTER TABLE rota_runs ADD COLUMN timeout BIGINT;
ALTER TABLE rota_runs ADD COLUMN retry TEXT;
ALTER TABLE rota_runs ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
DROP INDEX rota_runs_finished;
CREATE INDEX rota_runs_finished ON rota_runs (finished_at) WHERE finished_at IS NOT NULL AND kept = 0;
CREATE UNIQUE INDEX rota_runs_firing ON rota_runs (schedule, nominal)
  WHERE schedule IS NOT NULL AND kind IN ('cron', 'interval', 'once');
CREATE INDEX rota_runs_schedule ON rota_runs (schedule, id) WHERE schedule IS NOT NULL;
CREATE INDEX rota_runs_of_schedule ON rota_runs (schedule, id)
  WHERE schedule IS NOT NULL AND state IN ('waiting', 'ready', 'running');
