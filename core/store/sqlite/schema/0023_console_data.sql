-- Contexts, downloads, extensions and usage of a whole project, for the console; makers of API keys.

ALTER TABLE contexts ADD COLUMN saved_by TEXT;              -- session of the last save; NULL: an upload
CREATE INDEX contexts_by_time ON contexts (project_id, created_at, id) WHERE status = 'active';
CREATE INDEX sessions_open_by_context ON sessions (context_id, id)
  WHERE context_id IS NOT NULL AND status IN ('PENDING', 'RUNNING');
CREATE INDEX downloads_by_time ON downloads (project_id, created_at, id);
CREATE INDEX extensions_by_time ON extensions (project_id, created_at, id) WHERE deleted_at IS NULL;

ALTER TABLE api_keys ADD COLUMN made_by TEXT;               -- public part of a key; '': a login by link; NULL: the operator

-- What ended on each day in UTC: a row for a project, and one for each function that ran.
CREATE TABLE usage_days (
  project_id  TEXT NOT NULL REFERENCES projects (id),
  day         INTEGER NOT NULL,                             -- since 1970
  sessions    INTEGER NOT NULL DEFAULT 0,
  minutes     INTEGER NOT NULL DEFAULT 0,
  proxy_bytes INTEGER NOT NULL DEFAULT 0,
  runs        INTEGER NOT NULL DEFAULT 0,
  failed_runs INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (project_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_days_by_age ON usage_days (day);
CREATE TABLE usage_function_days (
  project_id  TEXT NOT NULL REFERENCES projects (id),
  day         INTEGER NOT NULL,
  function_id TEXT NOT NULL,                                -- also of a deleted function
  sessions    INTEGER NOT NULL DEFAULT 0,
  minutes     INTEGER NOT NULL DEFAULT 0,
  proxy_bytes INTEGER NOT NULL DEFAULT 0,
  runs        INTEGER NOT NULL DEFAULT 0,
  failed_runs INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (project_id, day, function_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_function_days_by_age ON usage_function_days (day);

-- From the rows that retention has left; what is gone stays in the sums of the project.
INSERT INTO usage_days (project_id, day, sessions, minutes, proxy_bytes)
  SELECT project_id, ended_at / 86400000, COUNT(*),
    SUM(MAX(1, (ended_at - started_at + 59999) / 60000)), SUM(proxy_bytes)
  FROM sessions WHERE ended_at IS NOT NULL AND started_at IS NOT NULL GROUP BY 1, 2;
INSERT INTO usage_days (project_id, day, runs, failed_runs)
  SELECT project_id, ended_at / 86400000, COUNT(*), SUM(status = 'FAILED')
  FROM invocations WHERE ended_at IS NOT NULL GROUP BY 1, 2
  ON CONFLICT (project_id, day) DO UPDATE
  SET runs = excluded.runs, failed_runs = excluded.failed_runs;
INSERT INTO usage_function_days (project_id, day, function_id, sessions, minutes, proxy_bytes)
  SELECT sessions.project_id, sessions.ended_at / 86400000, function_id, COUNT(*),
    SUM(MAX(1, (sessions.ended_at - sessions.started_at + 59999) / 60000)), SUM(proxy_bytes)
  FROM invocations JOIN sessions ON sessions.id = invocations.session_id
  WHERE sessions.ended_at IS NOT NULL AND sessions.started_at IS NOT NULL GROUP BY 1, 2, 3;
INSERT INTO usage_function_days (project_id, day, function_id, runs, failed_runs)
  SELECT project_id, ended_at / 86400000, function_id, COUNT(*), SUM(status = 'FAILED')
  FROM invocations WHERE ended_at IS NOT NULL GROUP BY 1, 2, 3
  ON CONFLICT (project_id, day, function_id) DO UPDATE
  SET runs = excluded.runs, failed_runs = excluded.failed_runs;

-- The sums of a project are those of all ended sessions from now on, and not only of removed ones.
UPDATE projects SET past_minutes = past_minutes + used.minutes,
  past_proxy_bytes = past_proxy_bytes + used.bytes
FROM (SELECT project_id, SUM(MAX(1, (ended_at - started_at + 59999) / 60000)) AS minutes,
    SUM(proxy_bytes) AS bytes
  FROM sessions WHERE ended_at IS NOT NULL AND started_at IS NOT NULL GROUP BY 1) AS used
WHERE projects.id = used.project_id;

-- A session and an invocation end once.
CREATE TRIGGER sessions_are_used AFTER UPDATE OF ended_at ON sessions
WHEN OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL AND NEW.started_at IS NOT NULL BEGIN
  UPDATE projects SET past_proxy_bytes = past_proxy_bytes + NEW.proxy_bytes,
    past_minutes = past_minutes + MAX(1, (NEW.ended_at - NEW.started_at + 59999) / 60000)
  WHERE id = NEW.project_id;
  INSERT INTO usage_days (project_id, day, sessions, minutes, proxy_bytes)
  VALUES (NEW.project_id, NEW.ended_at / 86400000, 1,
    MAX(1, (NEW.ended_at - NEW.started_at + 59999) / 60000), NEW.proxy_bytes)
  ON CONFLICT (project_id, day) DO UPDATE
  SET sessions = sessions + 1, minutes = minutes + excluded.minutes,
    proxy_bytes = proxy_bytes + excluded.proxy_bytes;
  INSERT INTO usage_function_days (project_id, day, function_id, sessions, minutes, proxy_bytes)
  SELECT NEW.project_id, NEW.ended_at / 86400000, function_id, 1,
    MAX(1, (NEW.ended_at - NEW.started_at + 59999) / 60000), NEW.proxy_bytes
  FROM invocations WHERE session_id = NEW.id
  ON CONFLICT (project_id, day, function_id) DO UPDATE
  SET sessions = sessions + 1, minutes = minutes + excluded.minutes,
    proxy_bytes = proxy_bytes + excluded.proxy_bytes;
END;
CREATE TRIGGER invocations_are_used AFTER UPDATE OF ended_at ON invocations
WHEN OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL BEGIN
  INSERT INTO usage_days (project_id, day, runs, failed_runs)
  VALUES (NEW.project_id, NEW.ended_at / 86400000, 1, NEW.status = 'FAILED')
  ON CONFLICT (project_id, day) DO UPDATE
  SET runs = runs + 1, failed_runs = failed_runs + excluded.failed_runs;
  INSERT INTO usage_function_days (project_id, day, function_id, runs, failed_runs)
  VALUES (NEW.project_id, NEW.ended_at / 86400000, NEW.function_id, 1, NEW.status = 'FAILED')
  ON CONFLICT (project_id, day, function_id) DO UPDATE
  SET runs = runs + 1, failed_runs = failed_runs + excluded.failed_runs;
END;
