-- Schedules. Whoever changes one holds its row from reading it on; its runs are changed after it.

-- name: schedules.insert @sqlite
INSERT INTO rota_schedules (key, app, declared, state, task, args, rule, policies, queue, priority, limits,
  call_limits, max_lost, timeout, retry, tags, description, version, created_at, changed_at, since, next, wake, decided_at)
VALUES (:key, :app, :declared, :state, :task, :args, :rule, :policies, :queue, :priority, :limits, :call_limits, :max_lost,
  :timeout, :retry, :tags, :description,
  (SELECT coalesce(max(version), 0) + 1 FROM rota_revisions WHERE schedule = :key), :now, :now, :now, :next, :wake, :now)
ON CONFLICT (key) DO NOTHING RETURNING key

-- name: schedules.insert @postgres
INSERT INTO rota_schedules (key, app, declared, state, task, args, rule, policies, queue, priority, limits,
  call_limits, max_lost, timeout, retry, tags, description, version, created_at, changed_at, since, next, wake, decided_at)
SELECT key, app, declared, state, task, args, rule, policies, queue, priority, limits,
  call_limits, max_lost, timeout, retry, tags, description,
  (SELECT coalesce(max(version), 0) + 1 FROM rota_revisions WHERE schedule = new.key), :now, :now, :now, next, wake, :now
FROM unnest(:key::text[], :app::text[], :declared::integer[], :state::text[], :task::text[], :args::text[], :rule::text[],
  :policies::text[], :queue::text[], :priority::integer[], :limits::text[], :call_limits::text[], :max_lost::integer[],
  :timeout::bigint[], :retry::text[], :tags::text[], :description::text[], :next::bigint[], :wake::bigint[])
  AS new (key, app, declared, state, task, args, rule, policies, queue, priority, limits, call_limits, max_lost, timeout,
  retry, tags, description, next, wake)
ON CONFLICT (key) DO NOTHING RETURNING key

-- name: schedules.define @sqlite
UPDATE rota_schedules SET app = :app, declared = :declared, task = :task, args = :args, rule = :rule, policies = :policies,
  queue = :queue, priority = :priority, limits = :limits, call_limits = :call_limits, max_lost = :max_lost,
  timeout = :timeout, retry = :retry, tags = :tags, description = :description, changed_at = :now
WHERE key = :key

-- name: schedules.define @postgres
UPDATE rota_schedules SET app = new.app, declared = new.declared, task = new.task, args = new.args, rule = new.rule,
  policies = new.policies, queue = new.queue, priority = new.priority, limits = new.limits,
  call_limits = new.call_limits, max_lost = new.max_lost, timeout = new.timeout, retry = new.retry, tags = new.tags, description = new.description, changed_at = :now
FROM unnest(:key::text[], :app::text[], :declared::integer[], :task::text[], :args::text[], :rule::text[],
  :policies::text[], :queue::text[], :priority::integer[], :limits::text[], :call_limits::text[], :max_lost::integer[],
  :timeout::bigint[], :retry::text[], :tags::text[], :description::text[])
  AS new (key, app, declared, task, args, rule, policies, queue, priority, limits, call_limits, max_lost, timeout,
  retry, tags, description)
WHERE rota_schedules.key = new.key

-- name: schedules.lock @sqlite
SELECT * FROM rota_schedules WHERE key = :key

-- name: schedules.lock @postgres
SELECT * FROM rota_schedules WHERE key = ANY(:key::text[]) ORDER BY key FOR UPDATE

-- name: schedules.due @sqlite
SELECT *, :now AS clock, (SELECT at FROM rota_pause) AS resumed FROM (
  SELECT * FROM (SELECT * FROM rota_schedules WHERE wake <= :now AND wake > :now - :on_time ORDER BY wake LIMIT :most)
  UNION ALL
  SELECT * FROM (SELECT * FROM rota_schedules WHERE wake <= :now - :on_time ORDER BY wake LIMIT :late))
WHERE NOT EXISTS (SELECT 1 FROM rota_pause WHERE paused = 1)

-- name: schedules.due @postgres
WITH due AS MATERIALIZED (
  SELECT * FROM rota_schedules WHERE wake <= :now AND wake > :now - :on_time::bigint
  ORDER BY wake LIMIT :most FOR UPDATE SKIP LOCKED),
late AS MATERIALIZED (
  SELECT * FROM rota_schedules WHERE wake <= :now - :on_time::bigint ORDER BY wake LIMIT :late FOR UPDATE SKIP LOCKED)
SELECT *, CAST(:now AS BIGINT) AS clock, (SELECT at FROM rota_pause) AS resumed
FROM (SELECT * FROM due UNION ALL SELECT * FROM late) AS found
WHERE NOT EXISTS (SELECT 1 FROM rota_pause WHERE paused = 1)

-- name: schedules.next_wake
SELECT min(wake) - CAST(:now AS BIGINT) AS wait, (SELECT paused FROM rota_pause) AS paused FROM rota_schedules
WHERE wake IS NOT NULL

-- name: schedules.now
SELECT CAST(:now AS BIGINT) AS now, (SELECT paused FROM rota_pause) AS paused, (SELECT at FROM rota_pause) AS paused_at

-- name: schedules.under_way @sqlite
SELECT schedule, count(*) AS number, count(*) FILTER (WHERE gate IS NULL OR gate NOT LIKE '@%') AS going,
  min(rota_runs.id) AS first
FROM json_each(:rows) CROSS JOIN rota_runs
WHERE schedule = json_extract(value, '$[0]') AND state IN ('waiting', 'ready', 'running') GROUP BY schedule

-- name: schedules.under_way @postgres
SELECT schedule, count(*) AS number, count(*) FILTER (WHERE gate IS NULL OR gate NOT LIKE '@%') AS going, min(id) AS first
FROM rota_runs WHERE schedule = ANY(:key::text[]) AND state IN ('waiting', 'ready', 'running') GROUP BY schedule

-- name: schedules.decided @sqlite
UPDATE rota_schedules SET state = :state, version = version + :changed, since = :since, through = :through, next = :next,
  wake = :wake, decided_at = :decided_at, due = :due, runs = :runs, run_count = :run_count, started = :started,
  finished = :finished, succeeded = :succeeded, ended = :ended, error = :error, failures = :failures, asked = :asked,
  average = :average, hold_reason = :hold_reason, hold_at = :hold_at, hold_until = :hold_until, hold_by = :hold_by,
  hold_note = :hold_note
WHERE key = :key

-- name: schedules.decided @postgres
UPDATE rota_schedules SET state = new.state, version = version + new.changed, since = new.since, through = new.through,
  next = new.next, wake = new.wake, decided_at = new.decided_at, due = new.due, runs = new.runs, run_count = new.run_count,
  started = new.started, finished = new.finished, succeeded = new.succeeded, ended = new.ended, error = new.error,
  failures = new.failures, asked = new.asked, average = new.average, hold_reason = new.hold_reason,
  hold_at = new.hold_at, hold_until = new.hold_until, hold_by = new.hold_by, hold_note = new.hold_note
FROM unnest(:key::text[], :state::text[], :changed::integer[], :since::bigint[], :through::bigint[], :next::bigint[],
  :wake::bigint[], :due::bigint[], :runs::integer[], :run_count::bigint[], :started::bigint[], :finished::bigint[],
  :succeeded::bigint[], :ended::text[], :error::text[], :failures::integer[], :asked::bigint[],
  :average::double precision[], :hold_reason::text[], :hold_at::bigint[], :hold_until::bigint[], :hold_by::text[],
  :hold_note::text[], :decided_at::bigint[])
  AS new (key, state, changed, since, through, next, wake, due, runs, run_count, started, finished, succeeded, ended,
  error, failures, asked, average, hold_reason, hold_at, hold_until, hold_by, hold_note, decided_at)
WHERE rota_schedules.key = new.key

-- name: schedules.fired @sqlite
UPDATE rota_schedules SET through = :through, next = :next, wake = :wake, due = :due, runs = :runs, run_count = :run_count,
  decided_at = :decided_at
WHERE key = :key

-- name: schedules.fired @postgres
UPDATE rota_schedules SET through = new.through, next = new.next, wake = new.wake, due = new.due, runs = new.runs,
  run_count = new.run_count, decided_at = :decided_at::bigint
FROM unnest(:key::text[], :through::bigint[], :next::bigint[], :wake::bigint[], :due::bigint[], :runs::integer[],
  :run_count::bigint[]) AS new (key, through, next, wake, due, runs, run_count)
WHERE rota_schedules.key = new.key

-- name: schedules.runs @sqlite
INSERT INTO rota_runs (task, queue, state, priority, due, args, limits, gate, max_lost, created_at, schedule, kind,
  nominal, timeout, retry)
SELECT of.task, of.queue, CASE WHEN new.at > :now OR new.gate IS NOT NULL OR EXISTS (
    SELECT 1 FROM rota_limits
    WHERE new.limits IS NOT NULL OR rota_limits.key IN ('task:*', 'queue:*', 'task:' || of.task, 'queue:' || of.queue))
  THEN 'waiting' ELSE 'ready' END,
  new.priority, new.at, of.args, new.limits, new.gate, of.max_lost, :now, of.key, new.kind, new.nominal, of.timeout, of.retry
FROM (
  SELECT json_extract(value, '$[0]') AS schedule, json_extract(value, '$[1]') AS priority,
    json_extract(value, '$[2]') AS at, json_extract(value, '$[3]') AS limits, json_extract(value, '$[4]') AS gate,
    json_extract(value, '$[5]') AS kind, json_extract(value, '$[6]') AS nominal,
    key AS number FROM json_each(:rows)) AS new
CROSS JOIN rota_schedules AS of ON of.key = new.schedule
WHERE true ORDER BY new.number
ON CONFLICT (schedule, nominal) WHERE schedule IS NOT NULL AND kind IN ('cron', 'interval', 'once') DO NOTHING
RETURNING id, schedule, queue, state, nominal

-- name: schedules.runs @postgres
INSERT INTO rota_runs (task, queue, state, priority, due, args, limits, gate, max_lost, created_at, schedule, kind,
  nominal, timeout, retry)
SELECT of.task, of.queue, CASE WHEN new.at > :now OR new.gate IS NOT NULL OR EXISTS (
    SELECT 1 FROM rota_limits
    WHERE new.limits IS NOT NULL OR rota_limits.key IN ('task:*', 'queue:*', 'task:' || of.task, 'queue:' || of.queue))
  THEN 'waiting' ELSE 'ready' END,
  new.priority, new.at, of.args, new.limits, new.gate, of.max_lost, :now, of.key, new.kind, new.nominal, of.timeout, of.retry
FROM unnest(:schedule::text[], :priority::smallint[], :at::bigint[], :limits::text[], :gate::text[], :kind::text[],
  :nominal::bigint[]) WITH ORDINALITY AS new (schedule, priority, at, limits, gate, kind, nominal, number)
JOIN rota_schedules AS of ON of.key = new.schedule
ORDER BY new.number
ON CONFLICT (schedule, nominal) WHERE schedule IS NOT NULL AND kind IN ('cron', 'interval', 'once') DO NOTHING
RETURNING id, schedule, queue, state, nominal

-- name: schedules.cancel_runs @sqlite
UPDATE rota_runs SET cancel = :note, state = CASE WHEN state = 'running' THEN state ELSE 'cancelled' END,
  finished_at = CASE WHEN state = 'running' THEN NULL ELSE :now END
WHERE schedule = :key AND state IN ('waiting', 'ready', 'running') AND cancel IS NULL
  AND (state <> 'running' OR :running = 1)
RETURNING id, schedule, state, gate

-- name: schedules.cancel_runs @postgres
UPDATE rota_runs SET cancel = :note, state = CASE WHEN state = 'running' THEN state ELSE 'cancelled' END,
  finished_at = CASE WHEN state = 'running' THEN NULL ELSE CAST(:now AS BIGINT) END
WHERE schedule = ANY(:key::text[]) AND state IN ('waiting', 'ready', 'running') AND cancel IS NULL
  AND (state <> 'running' OR :running::integer = 1)
RETURNING id, schedule, state, gate

-- name: schedules.open @sqlite
UPDATE rota_runs SET gate = NULL, due = max(due, :now) WHERE id IN (
  SELECT id FROM rota_runs WHERE gate = '@' || :key AND state = 'waiting' ORDER BY priority DESC, nominal, id LIMIT :most)
RETURNING id

-- name: schedules.open @postgres
UPDATE rota_runs SET gate = NULL, due = greatest(due, :now) WHERE id IN (
  SELECT found.id FROM unnest(:key::text[], :most::bigint[]) AS wanted (key, most)
  CROSS JOIN LATERAL (SELECT id FROM rota_runs WHERE gate = '@' || wanted.key AND state = 'waiting'
                      ORDER BY priority DESC, nominal, id LIMIT wanted.most) AS found)
RETURNING id

-- name: skips.insert @sqlite
INSERT INTO rota_skips (schedule, reason, first, last, count, at) VALUES (:schedule, :reason, :first, :last, :count, :now)

-- name: skips.insert @postgres
INSERT INTO rota_skips (schedule, reason, first, last, count, at)
SELECT schedule, reason, first, last, count, :now
FROM unnest(:schedule::text[], :reason::text[], :first::bigint[], :last::bigint[], :count::bigint[])
  AS new (schedule, reason, first, last, count)

-- name: skips.newest @sqlite
SELECT id, schedule, reason, first, last, count FROM rota_skips WHERE schedule = :key ORDER BY last DESC, id DESC LIMIT 1

-- name: skips.newest @postgres
SELECT found.* FROM unnest(:key::text[]) AS wanted (key) CROSS JOIN LATERAL (
  SELECT id, schedule, reason, first, last, count FROM rota_skips WHERE schedule = wanted.key
  ORDER BY last DESC, id DESC LIMIT 1) AS found

-- name: skips.extend @sqlite
UPDATE rota_skips SET last = :last, count = count + :more, at = :now WHERE id = :id

-- name: skips.extend @postgres
UPDATE rota_skips SET last = new.last, count = rota_skips.count + new.more, at = :now
FROM unnest(:id::bigint[], :last::bigint[], :more::bigint[]) AS new (id, last, more) WHERE rota_skips.id = new.id

-- name: revisions.insert @sqlite
INSERT INTO rota_revisions (schedule, version, at, by_whom, what, note, changes)
VALUES (:schedule, (SELECT coalesce(max(version), 0) + 1 FROM rota_revisions WHERE schedule = :schedule), :now, :by_whom,
  :what, :note, :changes)

-- name: revisions.insert @postgres
INSERT INTO rota_revisions (schedule, version, at, by_whom, what, note, changes)
SELECT schedule, (SELECT coalesce(max(version), 0) + 1 FROM rota_revisions WHERE rota_revisions.schedule = new.schedule),
  :now, by_whom, what, note, changes
FROM unnest(:schedule::text[], :by_whom::text[], :what::text[], :note::text[], :changes::text[])
  AS new (schedule, by_whom, what, note, changes)

-- name: tags.clear @sqlite
DELETE FROM rota_tags WHERE schedule = :key

-- name: tags.clear @postgres
DELETE FROM rota_tags WHERE schedule = ANY(:key::text[])

-- name: tags.insert @sqlite
INSERT INTO rota_tags (tag, schedule) VALUES (:tag, :schedule)

-- name: tags.insert @postgres
INSERT INTO rota_tags (tag, schedule) SELECT * FROM unnest(:tag::text[], :schedule::text[])

-- name: schedules.forget @sqlite
UPDATE rota_runs SET kept = 0 WHERE schedule = :key AND kept = 1

-- name: schedules.forget @postgres
UPDATE rota_runs SET kept = 0 WHERE schedule = ANY(:key::text[]) AND kept = 1

-- name: skips.forget @sqlite
UPDATE rota_skips SET kept = 0 WHERE schedule = :key AND kept = 1

-- name: skips.forget @postgres
UPDATE rota_skips SET kept = 0 WHERE schedule = ANY(:key::text[]) AND kept = 1

-- name: revisions.forget @sqlite
UPDATE rota_revisions SET kept = 0 WHERE schedule = :key AND kept = 1

-- name: revisions.forget @postgres
UPDATE rota_revisions SET kept = 0 WHERE schedule = ANY(:key::text[]) AND kept = 1

-- name: schedules.remove @sqlite
DELETE FROM rota_schedules WHERE key = :key RETURNING key

-- name: schedules.remove @postgres
DELETE FROM rota_schedules WHERE key = ANY(:key::text[]) RETURNING key

-- name: pause.put
INSERT INTO rota_pause (id, paused, at, by_whom, note) VALUES (1, :paused, :now, :by_whom, :note)
ON CONFLICT (id) DO UPDATE SET paused = excluded.paused, at = excluded.at, by_whom = excluded.by_whom, note = excluded.note

-- name: pause.get
SELECT paused, at, by_whom, note FROM rota_pause

-- name: schedules.orphans
SELECT key FROM rota_schedules
WHERE state = 'active' AND wake IS NULL
  AND NOT EXISTS (SELECT 1 FROM rota_runs WHERE rota_runs.schedule = rota_schedules.key
                  AND rota_runs.state IN ('waiting', 'ready', 'running'))
UNION SELECT key FROM rota_schedules WHERE decided_at > CAST(:now AS BIGINT) + CAST(:on_time AS BIGINT)
LIMIT CAST(:most AS BIGINT)
