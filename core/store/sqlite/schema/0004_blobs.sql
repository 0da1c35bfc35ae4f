-- Who names a blob: the sweep asks for each one that is old.
CREATE INDEX builds_by_archive ON builds (archive_blob_id);
CREATE INDEX builds_by_bundle ON builds (bundle_blob_id) WHERE bundle_blob_id IS NOT NULL;
