/** A second project beside the default one: its key must find no object of the first. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';

/** Adds it to a core's data directory; returns its key. */
export function addProject(dir: string): string {
  const key = 'the-key-of-another-project';
  using opened = new DisposableStack();
  const db = opened.adopt(new Sqlite(join(dir, 'tabern.db')), (one) => one.close());
  db.exec(`
    INSERT INTO projects (id, name, default_timeout, concurrency, created_at, updated_at)
    VALUES ('other', 'other', 900, 5, 0, 0);
    INSERT INTO queues (kind, project_id, cap)
    VALUES ('invocation', 'other', 5), ('build', 'other', 5), ('session', 'other', 5)`);
  db.prepare(`INSERT INTO api_keys (hash, project_id, created_at) VALUES (?, 'other', 0)`).run(
    createHash('sha256').update(key).digest(),
  );
  return key;
}
