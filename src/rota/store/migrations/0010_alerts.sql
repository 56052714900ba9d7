-- Troubles that somebody is told of, once when they begin and once when they are over; schedules that are not well are found at once.

-- name: 0010_alerts
CREATE TABLE rota_troubles (
  subject TEXT NOT NULL,
  began BIGINT NOT NULL,
  kind TEXT NOT NULL,
  said TEXT NOT NULL,
  over BIGINT,
  told INTEGER NOT NULL DEFAULT 0,
  claimed BIGINT,
  tries INTEGER NOT NULL DEFAULT 0,
  wanted INTEGER,
  PRIMARY KEY (subject, began)
);
CREATE UNIQUE INDEX rota_troubles_open ON rota_troubles (subject) WHERE over IS NULL;
CREATE INDEX rota_troubles_untold ON rota_troubles (began) WHERE told < 2;
CREATE INDEX rota_troubles_over ON rota_troubles (over) WHERE over IS NOT NULL;
CREATE INDEX rota_schedules_unwell ON rota_schedules (key) WHERE state = 'active' AND ended <> 'succeeded';
