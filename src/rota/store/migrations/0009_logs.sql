-- What tasks logged, kept with runs that failed or took long, and the traces that runs were enqueued in; both go with them.

-- name: 0009_logs
CREATE TABLE rota_logs (
  run BIGINT NOT NULL REFERENCES rota_runs (id) ON DELETE CASCADE,
  attempt INTEGER NOT NULL,
  lines TEXT NOT NULL,
  PRIMARY KEY (run, attempt)
);
CREATE TABLE rota_traces (
  run BIGINT PRIMARY KEY REFERENCES rota_runs (id) ON DELETE CASCADE,
  trace TEXT NOT NULL
);
