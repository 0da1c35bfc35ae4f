-- Keys that an operator makes and revokes, and limits of a project's own.

ALTER TABLE api_keys ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN last_used_at INTEGER;       -- to the minute
UPDATE api_keys SET public_id = lower(hex(randomblob(4))) WHERE public_id IS NULL;
CREATE UNIQUE INDEX api_keys_by_public_id ON api_keys (public_id);
CREATE INDEX api_keys_by_project ON api_keys (project_id, created_at);
CREATE INDEX api_keys_by_revocation ON api_keys (revoked_at) WHERE revoked_at IS NOT NULL;

ALTER TABLE queues ADD COLUMN ready_max INTEGER;            -- NULL: as the service's own setting
