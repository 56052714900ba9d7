-- What tasks logged, kept with runs that failed or took long; it goes with them.

-- name: 0009_logs
CREATE TABLE rota_logs (
  run BIGINT NOT NULL REFERENCES rota_runs (id) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  lines TEXT NOT NULL,
  PRIMARY KEY (run, attempt)
);
