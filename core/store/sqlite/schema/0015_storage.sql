-- What each project stores, counted with each row: quotas are compared with it, and nothing is scanned.

CREATE TABLE stored (
  project_id TEXT NOT NULL REFERENCES projects (id),
  kind       TEXT NOT NULL,                         -- of blobs; or ACTIVE_CONTEXT, SESSION_LOG, RESULT
  count      INTEGER NOT NULL,
  bytes      INTEGER NOT NULL,
  PRIMARY KEY (project_id, kind)
) STRICT, WITHOUT ROWID;

INSERT INTO stored (project_id, kind, count, bytes)
  SELECT project_id, kind, COUNT(*), SUM(size) FROM blobs GROUP BY project_id, kind
  UNION ALL
  SELECT project_id, 'ACTIVE_CONTEXT', COUNT(*), 0 FROM contexts
  WHERE status = 'active' GROUP BY project_id
  UNION ALL
  SELECT sessions.project_id, 'SESSION_LOG', COUNT(*), SUM(octet_length(entries))
  FROM session_logs JOIN sessions ON sessions.id = session_id GROUP BY sessions.project_id
  UNION ALL
  SELECT project_id, 'RESULT', COUNT(*), SUM(octet_length(results)) FROM invocations
  WHERE results IS NOT NULL GROUP BY project_id;

CREATE TRIGGER blobs_are_stored AFTER INSERT ON blobs BEGIN
  INSERT INTO stored (project_id, kind, count, bytes) VALUES (NEW.project_id, NEW.kind, 1, NEW.size)
  ON CONFLICT (project_id, kind) DO UPDATE SET count = count + 1, bytes = bytes + NEW.size;
END;
CREATE TRIGGER blobs_are_removed AFTER DELETE ON blobs BEGIN
  UPDATE stored SET count = count - 1, bytes = bytes - OLD.size
  WHERE project_id = OLD.project_id AND kind = OLD.kind;
END;
CREATE TRIGGER contexts_are_stored AFTER INSERT ON contexts WHEN NEW.status = 'active' BEGIN
  INSERT INTO stored (project_id, kind, count, bytes) VALUES (NEW.project_id, 'ACTIVE_CONTEXT', 1, 0)
  ON CONFLICT (project_id, kind) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER contexts_are_deleted AFTER UPDATE OF status ON contexts
WHEN OLD.status = 'active' AND NEW.status <> 'active' BEGIN
  UPDATE stored SET count = count - 1
  WHERE project_id = OLD.project_id AND kind = 'ACTIVE_CONTEXT';
END;

-- A session outlives its logs.
CREATE TRIGGER session_logs_are_stored AFTER INSERT ON session_logs BEGIN
  INSERT INTO stored (project_id, kind, count, bytes)
  SELECT project_id, 'SESSION_LOG', 1, octet_length(NEW.entries) FROM sessions WHERE id = NEW.session_id
  ON CONFLICT (project_id, kind) DO UPDATE
  SET count = count + 1, bytes = bytes + octet_length(NEW.entries);
END;
CREATE TRIGGER session_logs_are_removed AFTER DELETE ON session_logs BEGIN
  UPDATE stored SET count = count - 1, bytes = bytes - octet_length(OLD.entries)
  WHERE project_id = (SELECT project_id FROM sessions WHERE id = OLD.session_id)
    AND kind = 'SESSION_LOG';
END;
-- An invocation gets its results once.
CREATE TRIGGER results_are_stored AFTER UPDATE OF results ON invocations
WHEN OLD.results IS NULL AND NEW.results IS NOT NULL BEGIN
  INSERT INTO stored (project_id, kind, count, bytes)
  VALUES (NEW.project_id, 'RESULT', 1, octet_length(NEW.results))
  ON CONFLICT (project_id, kind) DO UPDATE
  SET count = count + 1, bytes = bytes + octet_length(NEW.results);
END;
CREATE TRIGGER results_are_removed AFTER DELETE ON invocations WHEN OLD.results IS NOT NULL BEGIN
  UPDATE stored SET count = count - 1, bytes = bytes - octet_length(OLD.results)
  WHERE project_id = OLD.project_id AND kind = 'RESULT';
END;

-- A project's own quotas; without a row the service's setting holds.
CREATE TABLE quotas (
  project_id TEXT NOT NULL REFERENCES projects (id),
  quota      TEXT NOT NULL,                         -- as in ProjectLimits: contexts, contextMib, ...
  value      INTEGER NOT NULL,
  PRIMARY KEY (project_id, quota)
) STRICT, WITHOUT ROWID;
