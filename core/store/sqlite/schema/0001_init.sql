-- All but contexts and webhooks. Times are Unix milliseconds, ids UUID v7 (so newest id = newest row).

CREATE TABLE projects (
  id              TEXT PRIMARY KEY,
  name            TEXT NOT NULL UNIQUE,
  default_timeout INTEGER NOT NULL,                 -- seconds
  concurrency     INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL
) STRICT;

CREATE TABLE api_keys (
  hash       BLOB PRIMARY KEY,                      -- SHA-256 of the whole key
  project_id TEXT NOT NULL REFERENCES projects (id),
  public_id  TEXT,                                  -- NULL for a preset key
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT;

CREATE TABLE sessions (
  id            TEXT PRIMARY KEY,
  project_id    TEXT NOT NULL REFERENCES projects (id),
  status        TEXT NOT NULL CHECK (status IN ('PENDING', 'RUNNING', 'ERROR', 'TIMED_OUT', 'COMPLETED')),
  region        TEXT NOT NULL,
  context_id    TEXT,
  keep_alive    INTEGER NOT NULL DEFAULT 0,
  proxy_bytes   INTEGER NOT NULL DEFAULT 0,
  user_metadata TEXT,                               -- JSON object
  params        TEXT NOT NULL,                      -- JSON object: how its browser is set up
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL,
  started_at    INTEGER,
  ended_at      INTEGER,
  expires_at    INTEGER NOT NULL,
  timeout_ms    INTEGER,                            -- from its start; NULL for an invocation's
  extension_id  TEXT,
  end_reason    TEXT                                -- one sentence, when its runner gave one
) STRICT;
CREATE INDEX sessions_by_project ON sessions (project_id, id);

CREATE TABLE blobs (
  id         TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  kind       TEXT NOT NULL CHECK (kind IN (
    'BUILD_ARCHIVE', 'BUNDLE', 'CONTEXT', 'DOWNLOAD', 'EXTENSION', 'RECORDING')),
  size       INTEGER NOT NULL,                      -- bytes
  sha256     TEXT NOT NULL,                         -- lower-case hex
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE builds (
  id              TEXT PRIMARY KEY,
  project_id      TEXT NOT NULL REFERENCES projects (id),
  entrypoint      TEXT NOT NULL,
  archive_blob_id TEXT NOT NULL REFERENCES blobs (id),
  bundle_blob_id  TEXT REFERENCES blobs (id),
  status          TEXT NOT NULL CHECK (status IN ('PENDING', 'RUNNING', 'COMPLETED', 'FAILED')),
  cause           TEXT,                             -- JSON, when FAILED
  ended_lease_id  TEXT,                             -- the lease whose outcome was taken
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  started_at      INTEGER,
  ended_at        INTEGER,
  expires_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX builds_by_project ON builds (project_id, id);
CREATE UNIQUE INDEX builds_by_ended_lease ON builds (ended_lease_id) WHERE ended_lease_id IS NOT NULL;

CREATE TABLE functions (
  id         TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name       TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (project_id, name)
) STRICT;
CREATE INDEX functions_by_project ON functions (project_id, id);

CREATE TABLE versions (
  id             TEXT PRIMARY KEY,
  project_id     TEXT NOT NULL REFERENCES projects (id),
  function_id    TEXT NOT NULL REFERENCES functions (id),
  build_id       TEXT NOT NULL REFERENCES builds (id),
  session_config TEXT,                              -- JSON object
  params_schema  TEXT,                              -- JSON schema
  created_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX versions_by_function ON versions (function_id, id);
CREATE INDEX versions_by_build ON versions (build_id);

CREATE TABLE invocations (
  id             TEXT PRIMARY KEY,
  project_id     TEXT NOT NULL REFERENCES projects (id),
  function_id    TEXT NOT NULL REFERENCES functions (id),
  version_id     TEXT NOT NULL REFERENCES versions (id),
  session_id     TEXT NOT NULL UNIQUE REFERENCES sessions (id),
  region         TEXT NOT NULL,
  status         TEXT NOT NULL CHECK (status IN ('PENDING', 'RUNNING', 'COMPLETED', 'FAILED')),
  params         TEXT NOT NULL,                     -- JSON object
  results        TEXT,                              -- JSON, when COMPLETED with a value
  cause          TEXT,                              -- JSON, when FAILED
  timeout_ms     INTEGER NOT NULL,
  ended_lease_id TEXT,                              -- the lease whose outcome was taken
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  started_at     INTEGER,
  ended_at       INTEGER,
  expires_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX invocations_by_version ON invocations (version_id, id);
CREATE UNIQUE INDEX invocations_by_ended_lease ON invocations (ended_lease_id)
  WHERE ended_lease_id IS NOT NULL;

-- Lines that invocations and builds print.
CREATE TABLE log_lines (
  owner_id TEXT NOT NULL,                           -- invocation or build
  number   INTEGER NOT NULL,                        -- from 0
  level    TEXT NOT NULL,
  message  TEXT NOT NULL,
  at       REAL NOT NULL,
  PRIMARY KEY (owner_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE log_heads (
  owner_id TEXT PRIMARY KEY,
  next     INTEGER NOT NULL,                        -- number of the line awaited
  bytes    INTEGER NOT NULL,                        -- kept so far
  cut      INTEGER NOT NULL                         -- 1 when the limit was met: lines are counted, not kept
) STRICT, WITHOUT ROWID;

-- Who leases. A runner has one live instance.
CREATE TABLE runners (
  id          TEXT PRIMARY KEY,
  instance_id TEXT NOT NULL,
  address     TEXT,                                 -- where gateways reach its sessions
  updated_at  INTEGER NOT NULL
) STRICT;

-- Work that waits or runs; a row ends with its resource.
CREATE TABLE jobs (
  id          TEXT PRIMARY KEY,                     -- of the invocation, build or session
  kind        TEXT NOT NULL CHECK (kind IN ('invocation', 'build', 'session')),
  project_id  TEXT NOT NULL REFERENCES projects (id),
  state       TEXT NOT NULL CHECK (state IN ('ready', 'running')),
  runner_id   TEXT,
  instance_id TEXT,
  lease_id    TEXT,
  lease_until INTEGER,
  expires_at  INTEGER NOT NULL,                     -- ready: end of patience; running: time is over, with a grace
  released_at INTEGER,                              -- a user asked for its end
  created_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX jobs_ready ON jobs (kind, project_id, id) WHERE state = 'ready';
CREATE UNIQUE INDEX jobs_by_lease ON jobs (lease_id) WHERE lease_id IS NOT NULL;
CREATE INDEX jobs_by_lease_end ON jobs (lease_until) WHERE state = 'running';
CREATE INDEX jobs_by_runner ON jobs (runner_id) WHERE state = 'running';
CREATE INDEX jobs_by_expiry ON jobs (expires_at);

-- One per project and kind. The smallest vtime is served next; serving adds one.
CREATE TABLE queues (
  kind       TEXT NOT NULL CHECK (kind IN ('invocation', 'build', 'session')),
  project_id TEXT NOT NULL REFERENCES projects (id),
  ready      INTEGER NOT NULL DEFAULT 0,
  running    INTEGER NOT NULL DEFAULT 0,
  cap        INTEGER NOT NULL,
  vtime      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, project_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX queues_by_vtime ON queues (kind, vtime);
CREATE INDEX queues_waiting ON queues (kind, vtime) WHERE ready > 0;
CREATE INDEX queues_next ON queues (kind, vtime) WHERE ready > 0 AND running < cap;
