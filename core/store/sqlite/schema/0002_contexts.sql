-- Contexts, and the pool of key pairs that they are made with. Times are Unix milliseconds.

-- Proves at start that keys/master.key is the one this database was sealed with.
CREATE TABLE master_key_check (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  sealed BLOB NOT NULL
) STRICT;

-- Key pairs that are ready; taking one deletes it in the transaction that makes the context.
CREATE TABLE key_pairs (
  id TEXT PRIMARY KEY,
  public_key TEXT NOT NULL,                        -- SPKI PEM
  private_key BLOB NOT NULL,                       -- PKCS#8 DER, sealed, aad = key_pairs/id
  created_at INTEGER NOT NULL
) STRICT;

-- A deleted context stays as a tombstone without its private key: what used it can still be explained.
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
) STRICT;
CREATE UNIQUE INDEX contexts_by_name ON contexts (project_id, name_key) WHERE status = 'active' AND name_key IS NOT NULL;
CREATE INDEX contexts_by_project ON contexts (project_id, id) WHERE status = 'active';
