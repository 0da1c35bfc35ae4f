-- The result of a one-shot is removed when it was read.

CREATE TRIGGER results_are_taken AFTER UPDATE OF results ON invocations
WHEN OLD.results IS NOT NULL AND NEW.results IS NULL BEGIN
  UPDATE stored SET count = count - 1, bytes = bytes - octet_length(OLD.results)
  WHERE project_id = OLD.project_id AND kind = 'RESULT';
END;
