-- Secrets of functions: values that clients seal for their project's key pair.

CREATE TABLE secret_key_pairs (
  id          TEXT PRIMARY KEY,
  project_id  TEXT NOT NULL UNIQUE REFERENCES projects (id),
  public_key  BLOB NOT NULL,                                -- X25519, 32 bytes
  private_key BLOB NOT NULL,                                -- sealed with the master key
  created_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE secrets (
  id          TEXT PRIMARY KEY,
  project_id  TEXT NOT NULL REFERENCES projects (id),
  secret_key  TEXT NOT NULL,                                -- its name
  key_pair_id TEXT NOT NULL REFERENCES secret_key_pairs (id),
  sealed      BLOB NOT NULL,                                -- as the client sent it: enc || ciphertext
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX secrets_by_name ON secrets (project_id, secret_key);
CREATE INDEX secrets_by_project ON secrets (project_id, id);

CREATE TABLE function_secrets (
  function_id TEXT NOT NULL REFERENCES functions (id),
  secret_id   TEXT NOT NULL REFERENCES secrets (id),
  PRIMARY KEY (function_id, secret_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX function_secrets_by_secret ON function_secrets (secret_id);
