-- A worker's lease has a length, so that a clock that is set back does not make it longer.
-- Schedules that were decided about by a clock which has been set back since are found at once.
-- Old skips and revisions are found like old runs; what ended is summed up by the hour; what has no next is found at once.
-- A schedule's own limits stand beside those that its call brings.

-- name: 0007_history
ALTER TABLE rota_schedules ADD COLUMN call_limits TEXT;
ALTER TABLE rota_workers ADD COLUMN length BIGINT;
CREATE INDEX rota_schedules_decided ON rota_schedules (decided_at);
CREATE INDEX rota_schedules_idle ON rota_schedules (key) WHERE state = 'active' AND wake IS NULL;
ALTER TABLE rota_skips ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
DROP INDEX rota_skips_at;
CREATE INDEX rota_skips_at ON rota_skips (at) WHERE kept = 0;
ALTER TABLE rota_revisions ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
CREATE INDEX rota_revisions_at ON rota_revisions (at) WHERE kept = 0;
CREATE TABLE rota_hours (
  hour BIGINT NOT NULL,
  task TEXT NOT NULL,
  queue TEXT NOT NULL,
  state TEXT NOT NULL,
  runs BIGINT NOT NULL,
  busy BIGINT NOT NULL,
  longest BIGINT NOT NULL,
  waited BIGINT NOT NULL,
  PRIMARY KEY (hour, task, queue, state)
);
CREATE TABLE rota_summed (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  through BIGINT NOT NULL
);
