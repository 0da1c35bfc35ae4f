/** A backup of the whole installation, as a file that the browser saves. */
import { Command } from '../../parts/text.tsx';

const RESTORE = 'tabern restore tabern-backup.tar --data NEW --master-key MASTER_KEY';

export function BackupPage() {
  return (
    <>
      <div class="head">
        <h1>Backup</h1>
        <a
          class="button main"
          href="/console/api/v1/operator/backup"
          target="_blank"
          rel="noopener"
        >
          Download a backup
        </a>
      </div>
      <p class="hint">
        One tar with a consistent copy of the database and every file of all projects, taken while
        the service runs. One is taken at a time. It has no master key, without which its secrets
        cannot be read: keep a copy of <code>keys/master.key</code> elsewhere.
      </p>
      <p class="hint">To restore it into a new directory, on a machine with tabern:</p>
      <Command text={RESTORE} />
    </>
  );
}
