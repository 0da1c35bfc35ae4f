CREATE TABLE migrations (
      number INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
CREATE TABLE projects (
  id              TEXT PRIMARY KEY,
  name            TEXT NOT NULL UNIQUE,
  default_timeout INTEGER NOT NULL,                 -- seconds
  concurrency     INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL
, past_minutes INTEGER NOT NULL DEFAULT 0, past_proxy_bytes INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE api_keys (
  hash       BLOB PRIMARY KEY,                      -- SHA-256 of the whole key
  project_id TEXT NOT NULL REFERENCES projects (id),
  public_id  TEXT,                                  -- NULL for a preset key
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
, name TEXT NOT NULL DEFAULT '', last_used_at INTEGER) STRICT;
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
, context_blob_id TEXT, context_seq INTEGER, ended_lease_id TEXT) STRICT;
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
CREATE TABLE functions (
  id         TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name       TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (project_id, name)
) STRICT;
CREATE TABLE versions (
  id             TEXT PRIMARY KEY,
  project_id     TEXT NOT NULL REFERENCES projects (id),
  function_id    TEXT NOT NULL REFERENCES functions (id),
  build_id       TEXT NOT NULL REFERENCES builds (id),
  session_config TEXT,                              -- JSON object
  params_schema  TEXT,                              -- JSON schema
  created_at     INTEGER NOT NULL
) STRICT;
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
CREATE TABLE runners (
  id          TEXT PRIMARY KEY,
  instance_id TEXT NOT NULL,
  address     TEXT,                                 -- where gateways reach its sessions
  updated_at  INTEGER NOT NULL
) STRICT;
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
CREATE TABLE queues (
  kind       TEXT NOT NULL CHECK (kind IN ('invocation', 'build', 'session')),
  project_id TEXT NOT NULL REFERENCES projects (id),
  ready      INTEGER NOT NULL DEFAULT 0,
  running    INTEGER NOT NULL DEFAULT 0,
  cap        INTEGER NOT NULL,
  vtime      INTEGER NOT NULL DEFAULT 0, ready_max INTEGER,
  PRIMARY KEY (kind, project_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE master_key_check (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  sealed BLOB NOT NULL
) STRICT;
CREATE TABLE key_pairs (
  id TEXT PRIMARY KEY,
  public_key TEXT NOT NULL,                        -- SPKI PEM
  private_key BLOB NOT NULL,                       -- PKCS#8 DER, sealed, aad = key_pairs/id
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE contexts (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT,                                       -- trimmed
  name_key TEXT,                                   -- what makes two names the same: NFC, lower case
  status TEXT NOT NULL CHECK (status IN ('active', 'deleted')),
  key_pair_id TEXT NOT NULL,                       -- the place its private key was sealed for
  public_key TEXT NOT NULL,
  private_key BLOB,                                -- null once deleted
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  deleted_at INTEGER,
  version INTEGER NOT NULL DEFAULT 1
, blob_id TEXT REFERENCES blobs (id), saved_at INTEGER, save_seq INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  endpoint TEXT NOT NULL,
  endpoint_key TEXT NOT NULL,                      -- the endpoint as new URL() writes it: what makes two of them the same
  event_types TEXT NOT NULL,                       -- sorted JSON array
  status TEXT NOT NULL CHECK (status IN ('enabled', 'disabled', 'deleted')),
  disabled_at INTEGER,
  disabled_reason TEXT,
  first_failure_at INTEGER,                        -- failing since; null after a success
  last_attempt_at INTEGER,
  consecutive_failures INTEGER NOT NULL DEFAULT 0,
  next_due INTEGER,                                -- MIN(due) of the pending deliveries; keeps the claim off a global sort
  cap INTEGER NOT NULL DEFAULT 8,                  -- deliveries in flight at once; delivery/pace.ts moves it
  breaker_ms INTEGER NOT NULL DEFAULT 0,           -- the wait between probes; 0: the breaker is closed
  not_before INTEGER NOT NULL DEFAULT 0,           -- breaker: no probe before
  paced_until INTEGER NOT NULL DEFAULT 0,          -- rate: when the last delivery taken would go out, one every so often
  last_served INTEGER NOT NULL DEFAULT 0,          -- fairness counter: the least recently served goes first
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  version INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE TABLE webhook_secrets (
  webhook_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  sealed BLOB NOT NULL,                            -- AES-256-GCM under keys/master.key, aad = webhook id and seq
  created_at INTEGER NOT NULL,
  expires_at INTEGER,                              -- null for the newest
  PRIMARY KEY (webhook_id, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,           -- the order of commit, never used twice: cursors of listeners
  id TEXT NOT NULL UNIQUE,
  project_id TEXT NOT NULL,
  type TEXT NOT NULL,
  resource_id TEXT NOT NULL,                       -- of a test: the webhook
  body BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE listeners (
  project_id TEXT PRIMARY KEY REFERENCES projects (id),
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE deliveries (
  id INTEGER PRIMARY KEY,
  event_id TEXT NOT NULL,
  webhook_id TEXT NOT NULL,
  is_test INTEGER NOT NULL DEFAULT 0,              -- its event is a test: what a report has to know without the event
  generation INTEGER NOT NULL DEFAULT 0,           -- one more at each replay
  state TEXT NOT NULL CHECK (state IN
    ('pending', 'in_flight', 'delivered', 'exhausted', 'skipped', 'cancelled')),
  reason TEXT,                                     -- why it was skipped, cancelled or given up
  due INTEGER,
  tries INTEGER NOT NULL DEFAULT 0,
  interrupted INTEGER NOT NULL DEFAULT 0,
  sender_id TEXT,                                  -- who holds it, while it is in flight
  instance_id TEXT,
  lease_until INTEGER,
  claim_seq INTEGER NOT NULL DEFAULT 0,            -- fences late reports
  created_at INTEGER NOT NULL,
  done_at INTEGER,
  UNIQUE (event_id, webhook_id)
) STRICT;
CREATE TABLE attempts (
  id INTEGER PRIMARY KEY,
  delivery_id INTEGER NOT NULL,
  n INTEGER NOT NULL,                              -- counts the attempts of a delivery from 1, over all its generations
  trigger TEXT NOT NULL CHECK (trigger IN ('event', 'retry', 'manual')),
  endpoint TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  outcome TEXT CHECK (outcome IN ('ok', 'http', 'timeout', 'dns', 'connect', 'tls', 'blocked', 'reset',
    'protocol', 'interrupted')),
  status INTEGER,
  latency_ms INTEGER,
  error TEXT,
  response BLOB,
  remote_ip TEXT
) STRICT;
CREATE TABLE heartbeat (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  at INTEGER NOT NULL
) STRICT;
CREATE TABLE session_metadata (
  project_id TEXT NOT NULL,
  path       TEXT NOT NULL,                            -- JSON array of the keys that lead there
  value      TEXT NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  PRIMARY KEY (project_id, path, value, session_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE session_logs (
  session_id TEXT NOT NULL REFERENCES sessions (id),
  number     INTEGER NOT NULL,                      -- from 0
  entries    BLOB NOT NULL,                         -- zstd of JSON of one SessionLog a line
  count      INTEGER NOT NULL,                      -- entries
  size       INTEGER NOT NULL,                      -- bytes before compression
  at         INTEGER NOT NULL,
  PRIMARY KEY (session_id, number)
) STRICT;
CREATE TABLE session_log_heads (
  session_id TEXT PRIMARY KEY REFERENCES sessions (id),
  next       INTEGER NOT NULL,                      -- number of the chunk awaited
  size       INTEGER NOT NULL,                      -- bytes before compression, so far
  full_at    INTEGER,                               -- when its limit was met: nothing more is kept
  at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE recordings (
  session_id   TEXT NOT NULL REFERENCES sessions (id),
  page_id      INTEGER NOT NULL,                    -- from 0
  project_id   TEXT NOT NULL REFERENCES projects (id),
  lease_id     TEXT NOT NULL,                       -- whose holder brings it, also after the session's end
  url          TEXT NOT NULL,
  start_ms     INTEGER NOT NULL,
  end_ms       INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  requested_at INTEGER,                             -- NULL: nobody asked for the download
  completed_at INTEGER,                             -- NULL: more may come
  PRIMARY KEY (session_id, page_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE recording_parts (
  session_id TEXT NOT NULL,
  page_id    INTEGER NOT NULL,
  number     INTEGER NOT NULL,                      -- 0: the video's start; its segments from 1
  blob_id    TEXT NOT NULL UNIQUE REFERENCES blobs (id),
  size       INTEGER NOT NULL,                      -- bytes, as the blob's
  start_ms   INTEGER NOT NULL,
  end_ms     INTEGER NOT NULL,
  PRIMARY KEY (session_id, page_id, number),
  FOREIGN KEY (session_id, page_id) REFERENCES recordings (session_id, page_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE downloads (
  id         TEXT PRIMARY KEY,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  project_id TEXT NOT NULL REFERENCES projects (id),
  blob_id    TEXT NOT NULL UNIQUE REFERENCES blobs (id),
  filename   TEXT NOT NULL,
  mime_type  TEXT NOT NULL,
  size       INTEGER NOT NULL,                      -- bytes, as the blob's
  sha256     TEXT NOT NULL,                         -- lower-case hex, as the blob's
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE extensions (
  id         TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  blob_id    TEXT NOT NULL UNIQUE REFERENCES blobs (id),
  file_name  TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  deleted_at INTEGER
) STRICT;
CREATE TABLE idempotency_keys (
  project_id    TEXT NOT NULL REFERENCES projects (id),
  key           TEXT NOT NULL,
  request_hash  BLOB NOT NULL,                      -- SHA-256 of what was asked for
  invocation_id TEXT NOT NULL REFERENCES invocations (id),
  expires_at    INTEGER NOT NULL,
  PRIMARY KEY (project_id, key)
) STRICT, WITHOUT ROWID;
INSERT INTO migrations (number, name) VALUES (1, '0001_init.sql');
INSERT INTO migrations (number, name) VALUES (2, '0002_contexts.sql');
INSERT INTO migrations (number, name) VALUES (3, '0003_webhooks.sql');
INSERT INTO migrations (number, name) VALUES (4, '0004_blobs.sql');
INSERT INTO migrations (number, name) VALUES (5, '0005_context_content.sql');
INSERT INTO migrations (number, name) VALUES (6, '0006_sessions.sql');
INSERT INTO migrations (number, name) VALUES (7, '0007_session_logs.sql');
INSERT INTO migrations (number, name) VALUES (8, '0008_recordings.sql');
INSERT INTO migrations (number, name) VALUES (9, '0009_files.sql');
INSERT INTO migrations (number, name) VALUES (10, '0010_idempotency.sql');
INSERT INTO migrations (number, name) VALUES (11, '0011_keys.sql');
INSERT INTO migrations (number, name) VALUES (12, '0012_session_retention.sql');
INSERT INTO projects (id, name, default_timeout, concurrency, created_at, updated_at, past_minutes, past_proxy_bytes) VALUES ('01a1fd16-953b-7700-98b5-41a1311a3c71', 'default', 900, 25, 1767323045678, 1767323045678, 0, 0);
INSERT INTO api_keys (hash, project_id, public_id, created_at, revoked_at, name, last_used_at) VALUES (X'8908130d8034967a1b3b082ffbf34e71100edca124eefc7ebde90a76842e7ffa', '01a1fd16-953b-7700-98b5-41a1311a3c71', '89hz9pkh', 1767323045678, NULL, 'preset', 1767323040000);
INSERT INTO sessions (id, project_id, status, region, context_id, keep_alive, proxy_bytes, user_metadata, params, created_at, updated_at, started_at, ended_at, expires_at, timeout_ms, extension_id, end_reason, context_blob_id, context_seq, ended_lease_id) VALUES ('01a1fd16-99f2-7700-8c31-1ac144a33618', '01a1fd16-953b-7700-98b5-41a1311a3c71', 'COMPLETED', 'us-west-2', NULL, 0, 0, NULL, '{}', 1767323045678, 1767323045678, 1767323045678, 1767323045678, 1767323945678, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO sessions (id, project_id, status, region, context_id, keep_alive, proxy_bytes, user_metadata, params, created_at, updated_at, started_at, ended_at, expires_at, timeout_ms, extension_id, end_reason, context_blob_id, context_seq, ended_lease_id) VALUES ('01a1fd16-9a14-7100-a3d1-7c16f61b1647', '01a1fd16-953b-7700-98b5-41a1311a3c71', 'RUNNING', 'us-west-2', NULL, 0, 0, NULL, '{}', 1767323045678, 1767323045678, 1767323045678, NULL, 1767323945678, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO sessions (id, project_id, status, region, context_id, keep_alive, proxy_bytes, user_metadata, params, created_at, updated_at, started_at, ended_at, expires_at, timeout_ms, extension_id, end_reason, context_blob_id, context_seq, ended_lease_id) VALUES ('01a1fd16-9a39-7200-804a-5809d01c8c9b', '01a1fd16-953b-7700-98b5-41a1311a3c71', 'RUNNING', 'us-west-2', NULL, 0, 0, NULL, '{}', 1767323045678, 1767323045678, 1767323045678, NULL, 1767323945678, 900000, NULL, NULL, NULL, NULL, NULL);
INSERT INTO blobs (id, project_id, kind, size, sha256, created_at) VALUES ('01a1fd16-984b-7000-bfed-76660e6d5c6d', '01a1fd16-953b-7700-98b5-41a1311a3c71', 'EXTENSION', 180, 'cb61a764d00b2ebefe15841bd2886d25294fe7fa19b8f4deddfff49e8c16ad55', 1767323045678);
INSERT INTO blobs (id, project_id, kind, size, sha256, created_at) VALUES ('01a1fd16-985c-7700-84ca-dd06628555f3', '01a1fd16-953b-7700-98b5-41a1311a3c71', 'BUILD_ARCHIVE', 7, '0eb3e36bfb24dcd9bb1d1bece1531216b59539a8fde17ee80224af0653c92aa3', 1767323045678);
INSERT INTO blobs (id, project_id, kind, size, sha256, created_at) VALUES ('01a1fd16-9860-7000-8230-9d8c6b924749', '01a1fd16-953b-7700-98b5-41a1311a3c71', 'BUNDLE', 6, '1e6ed65d77d6364eeaed5a745ba5c4985ae2b700dd85d7cf7f027bdf294a33fc', 1767323045678);
INSERT INTO blobs (id, project_id, kind, size, sha256, created_at) VALUES ('01a1fd16-9a77-7700-952d-8dfc4f1c48f4', '01a1fd16-953b-7700-98b5-41a1311a3c71', 'DOWNLOAD', 5, '277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9', 1767323045678);
INSERT INTO builds (id, project_id, entrypoint, archive_blob_id, bundle_blob_id, status, cause, ended_lease_id, created_at, updated_at, started_at, ended_at, expires_at) VALUES ('01a1fd16-985d-7500-988e-61381cecdd36', '01a1fd16-953b-7700-98b5-41a1311a3c71', 'index.ts', '01a1fd16-985c-7700-84ca-dd06628555f3', '01a1fd16-9860-7000-8230-9d8c6b924749', 'COMPLETED', NULL, '01a1fd16-985e-7200-b2e7-d8ccf37e1c3d', 1767323045678, 1767323045678, 1767323045678, 1767323045678, 1767323645678);
INSERT INTO functions (id, project_id, name, created_at, updated_at) VALUES ('01a1fd16-99e0-7300-85f2-3ca786493ede', '01a1fd16-953b-7700-98b5-41a1311a3c71', 'f', 1767323045678, 1767323045678);
INSERT INTO versions (id, project_id, function_id, build_id, session_config, params_schema, created_at) VALUES ('01a1fd16-99e0-7301-97ea-14eb26e962dc', '01a1fd16-953b-7700-98b5-41a1311a3c71', '01a1fd16-99e0-7300-85f2-3ca786493ede', '01a1fd16-985d-7500-988e-61381cecdd36', NULL, NULL, 1767323045678);
INSERT INTO invocations (id, project_id, function_id, version_id, session_id, region, status, params, results, cause, timeout_ms, ended_lease_id, created_at, updated_at, started_at, ended_at, expires_at) VALUES ('01a1fd16-99f2-7701-81d0-309758eceb4d', '01a1fd16-953b-7700-98b5-41a1311a3c71', '01a1fd16-99e0-7300-85f2-3ca786493ede', '01a1fd16-99e0-7301-97ea-14eb26e962dc', '01a1fd16-99f2-7700-8c31-1ac144a33618', 'us-west-2', 'COMPLETED', '{}', NULL, NULL, 900000, '01a1fd16-99fc-7200-b786-4e7332272e99', 1767323045678, 1767323045678, 1767323045678, 1767323045678, 1767323945678);
INSERT INTO invocations (id, project_id, function_id, version_id, session_id, region, status, params, results, cause, timeout_ms, ended_lease_id, created_at, updated_at, started_at, ended_at, expires_at) VALUES ('01a1fd16-9a14-7101-b61b-f81433fe884f', '01a1fd16-953b-7700-98b5-41a1311a3c71', '01a1fd16-99e0-7300-85f2-3ca786493ede', '01a1fd16-99e0-7301-97ea-14eb26e962dc', '01a1fd16-9a14-7100-a3d1-7c16f61b1647', 'us-west-2', 'RUNNING', '{}', NULL, NULL, 900000, NULL, 1767323045678, 1767323045678, 1767323045678, NULL, 1767323945678);
INSERT INTO runners (id, instance_id, address, updated_at) VALUES ('runner', 'first', NULL, 1767323045678);
INSERT INTO jobs (id, kind, project_id, state, runner_id, instance_id, lease_id, lease_until, expires_at, released_at, created_at) VALUES ('01a1fd16-9a14-7101-b61b-f81433fe884f', 'invocation', '01a1fd16-953b-7700-98b5-41a1311a3c71', 'running', 'runner', 'first', '01a1fd16-9a24-7200-b84f-702c25eb2b06', 1767323060678, 1767324065678, NULL, 1767323045678);
INSERT INTO jobs (id, kind, project_id, state, runner_id, instance_id, lease_id, lease_until, expires_at, released_at, created_at) VALUES ('01a1fd16-9a39-7200-804a-5809d01c8c9b', 'session', '01a1fd16-953b-7700-98b5-41a1311a3c71', 'running', 'runner', 'first', '01a1fd16-9a66-7300-adf5-6d9b9830d1fc', 1767323060678, 1767324065678, NULL, 1767323045678);
INSERT INTO queues (kind, project_id, ready, running, cap, vtime, ready_max) VALUES ('build', '01a1fd16-953b-7700-98b5-41a1311a3c71', 0, 0, 2, 1, NULL);
INSERT INTO queues (kind, project_id, ready, running, cap, vtime, ready_max) VALUES ('invocation', '01a1fd16-953b-7700-98b5-41a1311a3c71', 0, 1, 25, 2, NULL);
INSERT INTO queues (kind, project_id, ready, running, cap, vtime, ready_max) VALUES ('session', '01a1fd16-953b-7700-98b5-41a1311a3c71', 0, 1, 2147483648, 1, NULL);
INSERT INTO master_key_check (id, sealed) VALUES (1, X'0146a3452483a50a98b5749a1e8c6d235957b9b391d6aa5478fac7987154b4acbcea21bd92530826a3efd3ce2ac9');
INSERT INTO key_pairs (id, public_key, private_key, created_at) VALUES ('01a1fd16-9a27-7500-985a-124334431dea', '-----BEGIN PUBLIC KEY-----
MIIBojANBgkqhkiG9w0BAQEFAAOCAY8AMIIBigKCAYEAvqRrsMu2zX+hZykrd9kM
kjXQPtCK4krGxAyAn/OYaS4eqeDAqII9ykCX8/ctRPIobmm59IZKHdEXNPMlVSXR
xIF0Qisll/CSEoFKkJ3qmHoQ9Gs20j+M6NK8ilrmVXO6tfLD6P4zPBsLxG9A8Yze
7dB1xXSa/bt6Pppe/O/lh3uuipwCatO73kAKu5VqydNT0ENtRgwrjVJsIHM7F3x1
hfHQTm7lj8ZfrmT8P/5Rhmac1IiLuDuU5LjCLI23mQfVV0snbZT6bvUCD26t1oOf
k7rKOAYxkZqwLibS9KvoV7roPu8Rro3fgUe9Q5a/cjehfwI5YszEhMnhfAyQlwky
jpL/JW6S22ur25zIQqan9KrDykSA03hHrUO45oTM9FobHvnNhcHwRnmTE5z3PNP9
akAyh0xJ6cC1aIaUTCMXgx3zZ+aj67un0EbVcaHJeMLgwfszE+7BQwMmJAFXUrJC
kelR1KzyG2mjAjMtINg1TIrYh7Kiuyiw0SNfWajLuBfxAgMBAAE=
-----END PUBLIC KEY-----
', X'01ed8763e7d183bd2e1fac7d3754dd4b76e6b17853d770c4e9e783d564a1458b13ae19838c793a474613e3c4f3a6707f344b68645680bfdb993372bf589dcafcd918b4ffa69241df64a450e786b7286f3bd6c173d674d6db0dbf3d011f29e54dd89cadd82eacc25d6a495b9c3755691528c1df15f68b8aa765e5760fed9525619c580348f1df8ea356caf6144fe7946a87e8ef96f1a7c11747bff2d06f71a7f5aa6cd426540108ccb206bd459d652e94765629e6ba0c06e79f2b7056a01a2ed07ae7839a376a0bfdfae3582417891b21e2359b0358fe9f35ffe6ec6855a1819bfe76732d50ae5054b5fe387238882d6ffd3566db00854ada50066b4a4de203d6e01faa57ce1d0a6124eef758ab81efa242ed6e772c59ccda0e5dd89796e8a5380fd2c69d3d195cd22dbacf134737595a67496ff67622c71dcad23fdce01a8e1d1241749d31fb0a28d1eff0b22fd6292610a70618908ad1adc2d1e1c6bccad9e106174a1c082538a8c9a887d9f339eb6e1f3089f541514a3bd0cddeddb6cc3723fe376b9a97eed3a0e396884aa276405d7760343d97fd10be94db4dadd593b35939b34352ff733f0daf0d552ec398a60810cc6ebb4297ef5c773dcee51ee0402814a9b7c2ce54ea8bf6922bfbac32038d8cb6b265f13fc4f0e9b8a5c7e09ed20a2f77259aa1e5ee0f6972af73e500b98e7bf9f6eea11ac0da984c836cf4d8dac1e65651ae1a41e8fc3fac2808cf158a504bb1ede66bf2990f9cfbcc56d15123a6ebf2a256243507224038aaf3800ed0adb2288bbe6b222262541ef177771753d2cba904a51961d5f8386107995bc3499d63194723902df3888971c984872b81c0cea668d20f9249f23d6cf134f091639582ce392120f34d026ee36ca6aeb7f2da9e29626e8d42779c82a697cfef0fbeb2b3610511d87aca14067cb78b0d83d9da6cdb6cd70a554aa75fb00c330bf7cc9b8020c030ff3c05838d9d3453b4466ad43c25bb6cc039dddee9d8e43c9733c64a0daa74f26b0ec6d379bbf2eeff968a763d01db30969b14e37b1d39049fcfb1a8e4df8c63fa9e41569766618e3904a3a814247c5eee9432433b867554c199036b1f095cae724e6529f1c7a02a84900d885564b5da9f9027a5696245025f8ef309cc582ecd325abadb4303ed0229d889b152f02635f88caad801387b178f27368ff4b40ce92a4af7e82b3fe42fbd7fff161b2d4d1b82fdc00d419e2a1f70fb3dffe3d4f1efa5ac785f6758ed2c4695ba96d8f8b8442c8e1a70086fda06bf18f9e760ea00b831e48e3eb7d4cd22e1a27bee6bbd1f95717f560915bcf937d011a39f13955158331cc3c347bedd9be7e823ffeb6cbe4f9b4123aac0bd1c7942b0936e6c4de2fdd0da6d4dfc77a4b98145194c4e2e648e77a93916ab7d54824ef8a338564f773499150632138500ab0e77460a7a00383bf7dc4c19a256d161f9f6fb69a7f47860e4791ef6cc2ecd82c41526beaa584ce890d0410f78c2a265654212fd772da325a638274a54533a0dd53cb85ad36975f119884dac3439df38edbc7acb6f47094e1638db8d706de6546ccc91f12cb629eaea4afec0eacc830dfbc9001c5ce2439e42de25c8335b32c6ec0173c2d0a93b12abf3bdd462671d6d2855b79b257730e13470adb330af2c3b9e40102f920147bb3af8d8ed6b2ae6ec6c5988a2ae1d043568b2e8e347db463c2c9c0d68a07909105bb7c3187c74d325671918d21a40faa928f25ac3b3e8f3c853f4f136f9461200469396fe13a73d57464f406c087ac4cf314baee0503d30e65eabe6adef4bcda6ac38d93f24ed16416ff1c76885b4359f38f4422efd49e7812757006f39e2f90d4c02e206aa85610e418ad79052615f5b9ee0566e792e17347f486dcec44ad664d2043c72e79cc936f606e1cd814c776a7cd920609e2574fbc7d256c3ff5b30ee1db9d8d74a276237c28b9442ba517ac6e015d06d6c6d81cf62049b7d59aeafce75642d7d8d0caa9bbb426e35462a8864e74e43a04ba893e8e5ec7b3244df755bdee91df7191e9367c6bdd08541c4f6627d73e11ae94454afd9ab14acda0fef9bec75fc3ed495fbe797f5bdbea4b7ea6478d220ed34457761b5cc68c72479810426c56b0d35535aa14e680d47b69e43746bb2ebad7f72fa1db8e3537de02ac3e3945b3912814702cd3472281b560d7d570c9c083088cec020bc566383b355815fb7e98f1d7aa3e15462c2a3586247952aa4127a42ed8410b53ea15dfdea6d9556337c23fd06245958cbadffb63eac25b59acbc80c4bb2301ec1820023da8961880a339c70d25d8b9fb5d2a3aac43ff59c32dd32f70054139e212d90740b149a9ee38ab93dfab86e6f4ba70a3ef9884915d2adf0c369bed281d121098149ba396bd9f9fbfc44f428ff6406c074b2d0c8d3455f298b90883775b817b43e779d13ac8f4cfa345db44bcf40e310a2e06238177a294f47bb3508afe2e2ebd9b92983f8a0570e622e14c04334f538a6be14b95ca599b99773dbc75c75ec8379783454f925b668036b6154877157b6f1b1b57d960ad2079badc52e3bb169', 1767323045678);
INSERT INTO key_pairs (id, public_key, private_key, created_at) VALUES ('01a1fd16-9c4e-7300-b5c7-aeaaf15d576e', '-----BEGIN PUBLIC KEY-----
MIIBojANBgkqhkiG9w0BAQEFAAOCAY8AMIIBigKCAYEAwCV2AfhE50P9t10GlpWY
bzPG3EIGkuRWry7vRoARPolsutNwBgq9d03qh6NOfsWbLI51M+ouWUveT18rCHnw
/pusKIh+TvrXRivkys5Oy7pEHl3g4aFVwIHR1crsNUyn9w+sQ5IDLplod22WJT5v
PJ0RgxtvEbfOuCdDsyhD0cxecjTsG9kljUPMeem6FmwQE+cCtqyCrgxGxrQ1J/oh
X5BWK9G+DhNOpkNt56RuAJJa0mHPJ7fJcZFfgZ+pg61lDK3KgynchzfhLoiE71Ae
VuIRzUNWE6lrRDUWBYHvvEGwfPoeI8GYiGxiQjchEOAQ9QFfpdVxw1ya/EOoXEsy
dBWFj0TDkVO5wwispx7/hYTWVmtWU3SXvpyT2kCyA2v3gnTbUMA0siEsW9bWN6z8
EOPTqoZEt4BY6FeRjm84+00c2zS6tdnc/PLtEb3xyEaLaBXShw39LrSJVj+6f/P1
tIEftyv4dgFq8cugwUFfteZGi1Oru6+MbuX/kHRGJpLfAgMBAAE=
-----END PUBLIC KEY-----
', X'01893697e89eabc61b686b73d90768254a3de382be7a945ac159e1e651c724e65a167b4259f7c43720171bd6a8c8cbc3ff886c127e3b200562c2f4bc85fd79591f6e05b52fb9da7f62875607fe5f241ece09ee14ac0643987db09857aec4375020a15374023797eff27fb1af6b61b74422c0ba1e5e970271ccdbc5bf3786fbb6a06e6c6cf0ddd8e93a0e188fe2e8852582396ae23097682e7c7fc9bedb6c3b24a62c32937800f832c04d87c74a53b1fbe43815665b7f169f16eec741fb6c3712695d04924b810a36baf98dc39619a8bebb60ba0f39e2f8ba2c83a917a890d6f2ef11e1256b6ffb44e44078fd580359f3a6afcf90ff47fc9d717cd906cf33dc3c3585f5adc9fb7390c3415e3cb8f601472ccddeb2a750f70cf78f0657fe6cd65858575faa948805ae4620472705a5fc888e80a03ac1b4e2e5250f849478643feb8a49a635e695e21469e76a7c84308ac65725669a712b6e8296a90e4dd3a54d23efcf4601ce56ac661292d1cf20f941d1799b691b3a287c774e1a5a048faef558c7c704300f19fb890833bf375c34e79e76805ab55d2892edb25aded4007606d3935ef2795888d26add42d83a264e4d81601ed2b0c008636de82a7774347288efd4b0b7db91a4fc71c3ceb5fdea3e32e273eeed0be73196d8ac94a11b8e39f0d8525f0d9df8523ca7b9fca66837295c4aabd0d556a95501f6c9cf678ff2680520f21cbe689efa2bca14e61c941581a233cd0f5435fcfbfcef77ffa96a7beb16c8996e047aea033f27a2f9bf3acbb017c61e59b66d04cfe543543eb17b2e6fb7d1aed2bb0b8ebb25403fe4ef422d2bea224bdade53f9921d7648eb3d99895580ff09173e51f756a55ccf5d64aa1659b6f91f4c637dbe50609278b29c9bd49671f744153575e814cd1729b01e61a3550eb8be8a359b9602641eae5d79903c39c2ee0d149b0dc8956e8c71e1214c178c6fd1190011e6566ad6f85f80a4741ddd21851bb1f3f902abc5963b3f92dab24433a5c82a3e256559075b516a7e39682029bf1acb5f129c69947e8438ab2f756322114bee3b5f0cce4b98621d5647480c5d61c7b3f4d6e11d2d1ec0dd5d25fb4d6295c14612fc5d6cde6f58aa42d88e12bd08a007e9ad434938100e1621e5239898a8e29b977efe2c93b225cf7fda269651194304ecf57e29abc2b7a01bcd68ce8f21c55aa923b70e4117b8c4d5875361af95938b390a6cbdd512d46b0804bd103e7bfba3d0f1478ed758d31a9feb2b7d2d9aa30a564ef9fbf329597f82e9e958dad101d59d6de1033153fc720a3abe37ae1e3e6c1c6380166947241ea41407bc2cedb4e7250877dfd682ed6209c567fb9b6076864f1ece4c14657ced6d8ecf80c78c8dbbf88dcac62ce0fa52a730df71ad4afab19807165509a6a8d6d572012d66c59b36ea47047b6f06785a3c5a079726b2e12118509308314eb624ff81bb45271e880684bc1adb0aa30621658b8648222a33b62c25543a01292386fd430ad6b2f8b3f121d8aca9ba18cc8611b8046082deeabfd1a0b2f643bd83d2abc74bc82cc27a0b29f676cbd26d547fb2ddf2bff964cac8b13ac54490cfeb09e66f0c8a986ed11c2d2676646918d933ba92198390c81c8fd5f8727f9dcfdb8a6608f6a36dee482c15617b7e0909b602d252b821ef18695deb4911ab95079e54781000d1a16bc919519d9d6a4b78d16ec124d2dc3e22680cab153b1e4d3426b29879ab80298d64e679ab19db1fbe6ba030ee64fd5b9a790fae529c7ed486b2783b64b06d3beeb25330ac3592626160b1287050f4c0095fa1b07610d055d6f1bcd52dca1c04d29ab475b9e5f4df6e093ded453e3820271987066b08d9cfc2e913c2c1c49d9deb4e9b2f9fc12c030f6ade45aee0683de999e64f0faa52056d4bc7dcd22095afe5eaf2bf41ff60dfac6ea00d0ac588a51a7f9b10964c4478828289211a1cebf47ec2ec0be382fdb3d337e22e61878bd487abf761c321e016992a8cc6acccdf0d3cef28b3a16740798d1954b50fd48bb8751adf32dca47e76bed372d80d297c6c82ed1d96943769b715a782e682dc7d31257613f7be6b6d889ae5a4d93f3d90926b9bd2f3ca424caf95d0a704d22b790cbac2407f177ce2f41affad00dee320ae849fddb2da91ed5101fa430b25509fa4ce9b795bb6b3d0129d2993669de13168985771d7831657e22a87c5902afbba8f3be5772e9782181e433bf097d000f0801f45802b5225543d843c0c77060b2e5f54076e0c7880f9ec4fb03f5413051cd1b73a9e7e0207633655da5daab09ab77ef398ceaf18b525501b1e196da1dc37e357ce7054c521f10f32559c5b518ef4cc886ca9ca140dc1c54375a0557a72c350782cd922c8c3e7abdf481d36d50f1f781467007f78de4ed469b8b705611c3343921d7aca8bed0f314eadf14c9df977e6d0c45f553b593aededfb3ce8eda914c71d3faec404c2e5199e581c8e789a11ab1a449456e0b14c411e760efa8474c61858bc8f4c9c83ba638ba738169d92e522cf6b639a7688dd2472818979ad7de360c83cb7d17c6e647646e4a571a089b1', 1767323045678);
INSERT INTO contexts (id, project_id, name, name_key, status, key_pair_id, public_key, private_key, created_at, updated_at, deleted_at, version, blob_id, saved_at, save_seq) VALUES ('01a1fd16-9646-7600-86dc-0e4cccab01d4', '01a1fd16-953b-7700-98b5-41a1311a3c71', NULL, NULL, 'active', '01a1fd16-95e0-7300-8c96-ea8eadf5c6a8', '-----BEGIN PUBLIC KEY-----
MIIBojANBgkqhkiG9w0BAQEFAAOCAY8AMIIBigKCAYEAosNsr7QjsvU/uhsSZU7+
HEhIXOwY3o6O1NFZEz3KMuxIq3HhtZ9VBG6RNqrsRHDcTjuYrZmU/faUJUnWIcYk
HanVDsjcAkDxlSQSvyjgz4sOnwz4L8hXIPzNW98oBK6txbTAWZeclMSoFGBPzNsG
xrWu4sgWU8KSa1r7Ys/4J+kiOEpPqT1ZxnrkJQB36KPaE8sNGUac8HFQGAldk8fB
vCIHqIw6+QVsGyoaRW8f04AG4oA1jDSMUX0yhynVX08Zdpl/TV/JiymZHZXq1jRE
IdBo6gZMW/ZDEyjcjsvIu0ASy87L8nc54bHadrEEjvmGs6O1HFodfcFp4EBMAv1a
KJqp/3R2E8bL6nN9acYK32yndubYlFsrTwCw2COnDVBlwruc+apWIcp31jRyi7tt
PVGiRve5i6BvZ2kOHFKG8BkFexbcjLk6NMzxd0JdJABa7zWQzDzdLSxtu5DGhNKR
dvGc/rRmdefgkmvGj+CTbitsNumSdJ2j4+vl5ngZOBGbAgMBAAE=
-----END PUBLIC KEY-----
', X'01b30ee7edd7f6ca54d997b2788dd24172a1ac0be6b130dd0d5baf297cf70a06e0e481c06665f9e7a994e255799ef0734a436bc0d83cfc749b6fd4be5f1c9ffb80396223173663dc88df3eb15b72a88e545a09f13785bfb7608b3289dabee1ab3013e004fdaa0f4557ef2263694d181808db6a76111c90acd93e58a43225787847c44b4b10c1b256cae9fb7517bc31d9ac94a059d8808a31a22f221e9d289fe4d163df845dcb9c9ba03b8eb12ddfc1ff37dd17868bda6ee6208374f8d806f10e27c943ea08dd1dbc726f3ef8cf88e08b98ce4ed5b6e5ae1f188b96415ae8d7b847a2cdeaf59ea0a63704d2075408f74dd80a7c905cefbd0100e2632debe1251bb5967b03d9c760ee0a5da5c4349c9e8c853af44e03f4ef6e0dab646fe425c4f57963f778226cb56bdaa3195513bf5ff32349df6aac98dac3088186d4074b3ebaaa8ba47bd565e7c84479b43371e855ed103968be93eec1f80fcd9dfcba8ef0b43f7f6d77074be42dc6ac133b612c84320474ac1e66fe53024dcc24987604fc032bb5161145a1286b58a23513b16de9a79050df264f97fc7137568c59d051d2c22be41177b69c9101af8d313f8195dfc4956d46ce6f4a71e064da328dd9bff0f46294bcb3936a34a4a6e903b3b13a50e4abd851707d3ee341db8f0b93118e6b2fdef9953d07a1ab76c629f8d395ce95a1608a6dd568e03d8574f1e288df868aa6163c2413efd2ac58390f2329184cb086ba2f912ddd94428fe0da15d70ea1e524f64260c4c7071bc15c14072c4fc822c47bfe3830e529079422e7ec4a6d8efd75f2f856abd1dd8b1876e72f27bfd77c97f71abeffaf1417183282b38f4d58cf09e56754fc5a34e02b3d0748fec260a21716113cd9c472e5e7fd082dad079280a93fd6e7266f07ed697da06cdead63c77d296ea020cbadc8214971216c4dc586e9319b42ee96155b89b59f17c5996d201d2f1a5ef517889fb88480185f52c256c111efa134da6160cec43a00a3c7f27c52d19479ce64340b287e39bcaf3597a17b7bd121c6de8e999f77b9c9676ec33f86c4d4ac4a2df68302c5668e1b7fb5c6f15d91f5abb5e568da8299f6a3734a5152d87ff625e36f46255bd688d745e52b32016a3b5c3152aebbdc6dd00c08b6c117ecbeb522569cc5567a3408fb2275a9040b7e944d3abdb660ee6e4fdd846d8da082ebc7c9433551398400584aacb11534149fc391b541fc00b2fb9c6cffe6e3351f03e55a249c0ac2d46e284adadfcf0bdc411d556622c1ad6e22b0d6fecfe30106c03073a7c4033424edcff4991f344459c584da7f5e3decbedc71fa8dbaa8c468df39c3f5818225bbefb87c7747476146534089304520451014a3c297aa902903fe557ba6c8a41ddad88f4cf2c318465675f2999dbf72787a3b8bd3d36c325aa037e9e90af2afc8d95137858315b91eea680ba68b3974e5652a6089a12ecc7372208c81b166d16ae17df5c6cc493d4a79436ef794ee936ae8965d0c50324bcfd4e12701a1560f6787d6f8d9473cb2ea9e1f2558189e11c6b9914b89a04bfbe1bac3775e1084328d5f00ca850db58a756f9aeb4b7f8ddaa98e955deef5ce8bf30485b57c61311c014af0bbf42935af8b0cb4c3cadca94ac54bbda81a81bc18138625b1e1ed7efd26bdfc38f750e9ebb4d0c438d76d24c11bccec7142a9a11c4fdc3099efec726c1da9d85feafaaa1cfb144d798f7a504ff2886e00b24c7d94bc38b3dc88057b5703b5fd9a2c5ba06752c51694f1ab94d641db77784bf5bb844ffe8515485307ccbfc4f8b98062ab46750eb18f048c97d04e9db6ea0732169d5482da386e6a59ecee91695105031a7d5da90194fab81d5869238d78843666786af55ec83d22840335daab6b241ff27f80ea6629dbcf394c41339dd0282aa7956117b39d8a1962ffbc1b75d7985062d8b686882073b5b23a801f92c6dce5465f8e83dc309bd98cc32440fcdefb768376cc5cf262ed1d4d3aa0814e0eda22945efccbcbf1a6a20460f450732ecbde60176a8fdd0c4fb756b08173d00a09c39356643ca71398e8b5874ef7bd44d30803001cb2425ef83c66c92fdd8eab41331410906810e2066835292394c4a4cd166900ebb4f2283e12199c15f674934d771853f7b42226bd872471ba4ad27a82e76b73d3d8abd0accbeb3062b6c61f8ec577bfa47e9c1c461da67900d462a63efed1c178c3a1062036ec95f0898febf6c7b7bb410ad768b36b7858e3ac46477a6ea2ee7fcdbbab28f2e60d7820d0967843efb11db2bfc1d24f897bf7231fb5f490af4aae77d9580c2ee751fcac64e8f06e33b94d068ff82ea4ebc802e760ce7b4b3d0cd2607e5820371d79293b4f17ca38147ede998527c580b7f9ea2845c910e0db9b66e312293ecef0f89ab82be11ae7739ab2183b6093bb87f113392bf28aaf6126497679164ae0f7b86981ef3fe58d526adbd844673bf520489e5d843166f4e6c5a99b57ff54906c8b7233fad0bad94a5e773b55a627c47b1d808da5ff42f2e2a38aa9951b9b3d1b3f3b7cdd8898bbd5d78624eccebdbce0c3e952bf4265280815', 1767323045678, 1767323045678, NULL, 1, NULL, NULL, 0);
INSERT INTO contexts (id, project_id, name, name_key, status, key_pair_id, public_key, private_key, created_at, updated_at, deleted_at, version, blob_id, saved_at, save_seq) VALUES ('01a1fd16-9717-7100-8ea6-ee48f9c2c66a', '01a1fd16-953b-7700-98b5-41a1311a3c71', NULL, NULL, 'active', '01a1fd16-9836-7300-bdeb-dcc69e7b5477', '-----BEGIN PUBLIC KEY-----
MIIBojANBgkqhkiG9w0BAQEFAAOCAY8AMIIBigKCAYEAwasM5q4e4V+3lrM0W0dO
YAoiyvMa6XYcvrhOabvHL/tW59F3zdfC4XT0ERPjdcr+6z2g1hTZYKdy9WsRZ0zm
sf+Le5WmUMCmP9WKqpQD9oSiV/ufstwYNpJIsA/G2TuNX6Uu4d2G4QBDtUUUyAIJ
RVetyTFQyQddUlVG9dTLzStxWfeNTCOGsyb5VMDhG1VMy4ulBMoUlVqD9vjnRLle
y+giG6U0OOROtnj/EI/xKFKvGdOPl/0LNNWB95lxnN884I4SU54gCwuqnbnPy3RY
qoDv2dOAAu/Q0DzVhv2uoyha7VP4cM6k7oWrr/hGVplqOqKEUI4ybRXDnoHMWWoz
SfINNTXAbLVYzyMefcR1+bbUawRws/P+v9TpioM8IpoplcYqJNgZ0KiU89ZXb/AS
xCzqPfwXmceQOz43vs78ATHSg3Do0/H+Tq0y8X+xZGmazTwVfuLX9PjpUtB5drk5
aiHyBfGz4qTRJk95Qi9sGjvTKvJTibcnxuttUqd02PNfAgMBAAE=
-----END PUBLIC KEY-----
', X'012c1c3671d581b1c43342e09642f988e1b2d5242d1b46029ad9d54b1295ba00df9ae70d3033dcce14fe62211778040a4c80f57cc10c7e8aece53ad1dffed3c1ae24d77c9b4b683218acab5aa1d13b96c12ea5941c882089ed231e1c84bf7c956e5371c9fbb05634f70f0eab27292e33feb7a60553e028722373a3e3bf2997420b4eb245d120e333d5116e16f2df995a366cf8990e3c4acc5639d97017b798d4933ceae68ccd8389dff11e84e857e77bb2e5becc4d322356bdb8e5053d336634be3533bc3c0b4dfa1bf7618073286152963f8035ce0d6a1a65a1c002cc8ce7a13b9aa9f19ce69c21be4d0a4e798e8462eaa93ca44b059e488838d8f4204398c609c1ecceae07d124bf0d17a4c22a534c4010e6276a6b3131f8aa1420b1bab423ae73a399a6bad007619292ddd244e82cab296e95febd9eca42a7d50c0987af05653c3e7235b5b3562830846a4be9b65922f7e3c482549868bc89f173e43ed729b818d6d6a2f2e73b793dd28c2c4406bf2ce6f1eac7d17e5ef3df28055d83406c2820e5f64a6b50ebf2a547b9b65e6cae5a18f04da1d180cc5e24efed0fb9190cde964dae2f31a480a2075e97842fbe084b1d9ee4e1b84f39b8e578c52ec30e5f52fe33415218244d5a69244043a1d9bdeea9aa746feef028598c1bc256266ac455e70b0bde90dcfb4450a4e26ed4a66194088cac555490f10ce765186f6c024b7d09e501d8361071b6a8ee9cb93ad03ccfaabb62f564cbbf5c6601e9174d5472bc959f8a53b26405989e94b6564042f8ab132715c1b387c242ccc78ec1a72166375b94247052a3fe631d5a3564c339d688a696594e7fed347887b5c5a8ff4d5d005bfe6507502bada7a04aa8d2b1aeb843d33dd01a9117c442a4920f99668e52dbd337a003b9b4cf1ad090d8e5a1777ce9b55997535c3acc1114314ca17bcdcfc926500b8db015cb568c0ec22a3aed0ed1e2405ecb89484df45979ca69bba18acf8fb8fc4071dd4598de6fcb3cd52b145c5530c9fac0c9130be0f6838183193ceec7bd20e9c483258fa1389ffb63e7a7cafb33de3a14e11addeca2b631a410371439cb74c00ec607bdc773c152104fb8ac886a3fb39cebb5a330e09c3a6853d23c3cf1a53f07c9437ef6cc341627f0ddfd6c5135692e4289b7fc650b39abbcf4e66f89ddf8ac41bfbb5001fa0643f3f3d7c86d087fd5c201d79ecf0bb009cf951cc184aa097f5fa3f3cc4cc65ceae85892ace57cdfc5b7e9f8e33b64637817d1504a044202498d56037a26529a508228ee3fd4d82aa42d47e6f1041838af937ea2bb11867cbe173332bef776f7ab3231ab7de7fb8b03792a39f7f4c5216d3709d9c3970d16437f46ad708bcc98be50f487a9f786d255040e8560cbd6c4cfd7e1c8ca2841cdb037c971d277a34d87adddc266dffb28cb171afbcd6babe4e50bf76cbf87d75ee58cd945cde7b674d5823a695a96a69525c3f8c96b2c52b82a158044dc73ec29ab8fb3adb0a722c7d5e5e66cf19a29cc0084b8f4a8675be4eee4828da9a89ebe7923c11b4d1113840154e3bc0e50542b35eed00a999e3ef1309d3866b1f8db7e1501b5235a072f04c9a4bec6d0e1acfbf37e59f8bc2a0a7d05a8d9b39deeffd51e7055298d7880c95f62b9d9deb10140a854a4179f24559ab5595229f12a73cb402e9f8f9e030ef127addd7841e40d2d0d8b29b69a0fa11cfe52054caa66e5246471045a091599af16874b7161b1c977e03e7380772c6166bfecd677d68936ad4bdad31b5fc792254527aed035411952c292eb3518f20917297767a4bc50d9960f4d5c906f98ef9ef1f3069d99b27b3f1ffb42d80583d2f3a2294b4b2f9ed976ce4e90c7952ceb000f88bb58b9f0b605fb7d9fcf45060f577e08a4b643555985cb5fbc4c1549df5df8aea07be384302eb2ad8cb83b5a320724129db2316abd37f34e24258eac5bdac3a00a0494d5ddd21435e1d55abeafb29d4659398c9eeeffa079156ea06713786524715063b571b01f2025a17a3d865058b1ddda394841cb86d360e68c6a31504ac370716b51ab4286039661ef6821e6235e79d70340b36cdaac67799749962f96274c73eeb8b9f3134a011f1fbce2db707291c530f942630d70883f7eeec5d183b273bfb20b6d0a55c0a5122a0943f808e00407b24e0f879aa850ce11d09842c1a0250efa994b2c34ac10ecd283da029dd5e1d587e1c5b3e04f23e3b6b36e5f404cd4e861c811370af159847bb2bb203f9a3ca40546fa6ee1790ba5db2070417eba8f5615b97d39925f07d731d5d6af3c6afbb3ccf88cdaaa5668dc438047e53de98f8450bea34c2db39a2a8edcb688093e95f504dd503bf855bdc629cce4f473ff7f0991f379e7517545d9491db2cc5d18ea8da6139440bc493edf1abe0c87e3d44ad4c37056ae49eeddcc97dc22f25d29f8aeccb9863743c547075c12cc2ba6e20a7b0fab91fadec5d468847457df61ce8eeb1f956db755f0552e3e5c0bcb5ce9d89724ddaf94152687c2854657fa0bedd75448b96d7b336ec46bd58a05f420b05fccd0f4195b16a30f724352f112', 1767323045678, 1767323045678, NULL, 1, NULL, NULL, 0);
INSERT INTO webhooks (id, project_id, endpoint, endpoint_key, event_types, status, disabled_at, disabled_reason, first_failure_at, last_attempt_at, consecutive_failures, next_due, cap, breaker_ms, not_before, paced_until, last_served, created_at, updated_at, version) VALUES ('01a1fd16-99ed-7200-b6ce-2eceea352305', '01a1fd16-953b-7700-98b5-41a1311a3c71', 'https://93.184.216.34/39d89e29-6cd9-4507-b97e-4e8118575d05', 'https://93.184.216.34/39d89e29-6cd9-4507-b97e-4e8118575d05', '["functions.invocations.completed"]', 'enabled', NULL, NULL, 1767323045678, 1767323045678, 1, 1767323050131, 8, 0, 0, 1767323045698, 1, 1767323045678, 1767323045678, 1);
INSERT INTO webhook_secrets (webhook_id, seq, sealed, created_at, expires_at) VALUES ('01a1fd16-99ed-7200-b6ce-2eceea352305', 1, X'015b489a093f01a22660b2c803316e5f6aff5d3d762dd939afd274a332cc09f43b07a13c6c9692950736b2c68043c0e57faf40f0d1', 1767323045678, NULL);
INSERT INTO events (seq, id, project_id, type, resource_id, body, created_at) VALUES (1, '01a1fd16-9a09-7500-a4a0-9435e6df52e3', '01a1fd16-953b-7700-98b5-41a1311a3c71', 'functions.invocations.completed', '01a1fd16-99f2-7701-81d0-309758eceb4d', X'7b226964223a2230316131666431362d396130392d373530302d613461302d393433356536646635326533222c2274797065223a2266756e6374696f6e732e696e766f636174696f6e732e636f6d706c65746564222c2274696d657374616d70223a22323032362d30312d30325430333a30343a30352e3637385a222c227265736f757263654964223a2230316131666431362d393966322d373730312d383164302d333039373538656365623464222c2270726f6a6563744964223a2230316131666431362d393533622d373730302d393862352d343161313331316133633731222c2264617461223a7b226964223a2230316131666431362d393966322d373730312d383164302d333039373538656365623464222c2266756e6374696f6e4964223a2230316131666431362d393965302d373330302d383566322d336361373836343933656465222c2276657273696f6e4964223a2230316131666431362d393965302d373330312d393765612d313465623236653936326463222c2273657373696f6e4964223a2230316131666431362d393966322d373730302d386333312d316163313434613333363138222c22726567696f6e223a2275732d776573742d32222c22737461747573223a22434f4d504c45544544222c22637265617465644174223a22323032362d30312d30325430333a30343a30352e3637385a222c22757064617465644174223a22323032362d30312d30325430333a30343a30352e3637385a222c22737461727465644174223a22323032362d30312d30325430333a30343a30352e3637385a222c22656e6465644174223a22323032362d30312d30325430333a30343a30352e3637385a222c22657870697265734174223a22323032362d30312d30325430333a31393a30352e3637385a222c22726573756c7473223a6e756c6c2c22726573756c74735472756e6361746564223a66616c73657d7d', 1767323045678);
INSERT INTO deliveries (id, event_id, webhook_id, is_test, generation, state, reason, due, tries, interrupted, sender_id, instance_id, lease_until, claim_seq, created_at, done_at) VALUES (1, '01a1fd16-9a09-7500-a4a0-9435e6df52e3', '01a1fd16-99ed-7200-b6ce-2eceea352305', 0, 0, 'pending', NULL, 1767323050131, 1, 0, 'vm:41687', '01a1fd16-95d6-7f34-940a-497b16ba2c39', NULL, 1, 1767323045678, NULL);
INSERT INTO attempts (id, delivery_id, n, trigger, endpoint, started_at, ended_at, outcome, status, latency_ms, error, response, remote_ip) VALUES (1, 1, 1, 'event', 'https://93.184.216.34/39d89e29-6cd9-4507-b97e-4e8118575d05', 1767323045678, 1767323045678, 'tls', NULL, 27, 'the certificate chain is self-signed', X'', NULL);
INSERT INTO heartbeat (id, at) VALUES (1, 1767323045678);
INSERT INTO downloads (id, session_id, project_id, blob_id, filename, mime_type, size, sha256, created_at) VALUES ('01a1fd16-9a7b-7100-9b16-b912a29516d1', '01a1fd16-9a39-7200-804a-5809d01c8c9b', '01a1fd16-953b-7700-98b5-41a1311a3c71', '01a1fd16-9a77-7700-952d-8dfc4f1c48f4', 'a.txt', 'text/plain', 5, '277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9', 1767323045678);
INSERT INTO extensions (id, project_id, blob_id, file_name, created_at, updated_at, deleted_at) VALUES ('01a1fd16-9855-7200-ba0b-f389c9234be5', '01a1fd16-953b-7700-98b5-41a1311a3c71', '01a1fd16-984b-7000-bfed-76660e6d5c6d', 'x.zip', 1767323045678, 1767323045678, NULL);
CREATE INDEX sessions_by_project ON sessions (project_id, id);
CREATE INDEX builds_by_project ON builds (project_id, id);
CREATE UNIQUE INDEX builds_by_ended_lease ON builds (ended_lease_id) WHERE ended_lease_id IS NOT NULL;
CREATE INDEX functions_by_project ON functions (project_id, id);
CREATE INDEX versions_by_function ON versions (function_id, id);
CREATE INDEX versions_by_build ON versions (build_id);
CREATE INDEX invocations_by_version ON invocations (version_id, id);
CREATE UNIQUE INDEX invocations_by_ended_lease ON invocations (ended_lease_id)
  WHERE ended_lease_id IS NOT NULL;
CREATE INDEX jobs_ready ON jobs (kind, project_id, id) WHERE state = 'ready';
CREATE UNIQUE INDEX jobs_by_lease ON jobs (lease_id) WHERE lease_id IS NOT NULL;
CREATE INDEX jobs_by_lease_end ON jobs (lease_until) WHERE state = 'running';
CREATE INDEX jobs_by_runner ON jobs (runner_id) WHERE state = 'running';
CREATE INDEX jobs_by_expiry ON jobs (expires_at);
CREATE INDEX queues_by_vtime ON queues (kind, vtime);
CREATE INDEX queues_waiting ON queues (kind, vtime) WHERE ready > 0;
CREATE INDEX queues_next ON queues (kind, vtime) WHERE ready > 0 AND running < cap;
CREATE UNIQUE INDEX contexts_by_name ON contexts (project_id, name_key) WHERE status = 'active' AND name_key IS NOT NULL;
CREATE INDEX contexts_by_project ON contexts (project_id, id) WHERE status = 'active';
CREATE UNIQUE INDEX webhooks_by_endpoint ON webhooks (project_id, endpoint_key) WHERE status <> 'deleted';
CREATE INDEX webhooks_by_project ON webhooks (project_id, id) WHERE status <> 'deleted';
CREATE INDEX webhooks_due ON webhooks (next_due) WHERE next_due IS NOT NULL AND status <> 'deleted';
CREATE INDEX webhooks_served ON webhooks (last_served);
CREATE INDEX webhooks_deleted ON webhooks (updated_at) WHERE status = 'deleted';
CREATE UNIQUE INDEX events_once ON events (resource_id, type) WHERE type <> 'webhooks.test';
CREATE INDEX events_by_resource ON events (resource_id);
CREATE INDEX events_by_project ON events (project_id, seq);
CREATE INDEX events_by_age ON events (created_at);
CREATE INDEX deliveries_due ON deliveries (webhook_id, due) WHERE state = 'pending';
CREATE INDEX deliveries_leased ON deliveries (lease_until) WHERE state = 'in_flight';
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, id);
CREATE INDEX deliveries_by_state ON deliveries (webhook_id, state, id) WHERE state <> 'in_flight';
CREATE INDEX deliveries_gone ON deliveries (sender_id) WHERE state = 'cancelled' AND lease_until IS NOT NULL;
CREATE INDEX attempts_by_delivery ON attempts (delivery_id, n);
CREATE INDEX builds_by_archive ON builds (archive_blob_id);
CREATE INDEX builds_by_bundle ON builds (bundle_blob_id) WHERE bundle_blob_id IS NOT NULL;
CREATE UNIQUE INDEX contexts_by_blob ON contexts (blob_id) WHERE blob_id IS NOT NULL;
CREATE INDEX sessions_by_context_blob ON sessions (context_blob_id)
  WHERE context_blob_id IS NOT NULL AND status IN ('PENDING', 'RUNNING');
CREATE UNIQUE INDEX sessions_by_ended_lease ON sessions (ended_lease_id)
  WHERE ended_lease_id IS NOT NULL;
CREATE INDEX sessions_by_status ON sessions (project_id, status, id);
CREATE INDEX jobs_in_limit ON jobs (project_id) WHERE kind = 'session' AND released_at IS NULL;
CREATE INDEX jobs_released ON jobs (runner_id) WHERE released_at IS NOT NULL;
CREATE INDEX session_logs_by_age ON session_logs (at);
CREATE INDEX session_log_heads_by_age ON session_log_heads (at);
CREATE INDEX recordings_by_lease ON recordings (lease_id);
CREATE INDEX recordings_by_age ON recordings (created_at);
CREATE INDEX downloads_by_session ON downloads (session_id, id);
CREATE INDEX downloads_by_age ON downloads (created_at);
CREATE INDEX extensions_by_project ON extensions (project_id, id);
CREATE INDEX extensions_deleted ON extensions (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX sessions_open_by_project ON sessions (project_id)
  WHERE status IN ('PENDING', 'RUNNING');
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);
CREATE UNIQUE INDEX api_keys_by_public_id ON api_keys (public_id);
CREATE INDEX api_keys_by_project ON api_keys (project_id, created_at);
CREATE INDEX api_keys_by_revocation ON api_keys (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE INDEX session_metadata_by_session ON session_metadata (session_id);
