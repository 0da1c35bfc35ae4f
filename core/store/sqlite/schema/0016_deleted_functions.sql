-- A deleted function is not found any more; its invocations, versions and builds are removed in steps.

ALTER TABLE functions ADD COLUMN deleted_at INTEGER;
CREATE INDEX functions_deleted ON functions (deleted_at) WHERE deleted_at IS NOT NULL;
