/**
 * The tests that do not run where the service runs in another way, by suite and name, `*` for all
 * of a suite, each with the reason. A run prints them as skipped; a name that no test has is red.
 */

type Reasons = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** In place of a name. */
export const ALL = '*';

const LOOKS = 'its service begins with a stored data directory, of SQLite';
const UPGRADE = '`tabern upgrade` replaces the program of `tabern serve`';
const DRAIN = 'one signal drains the roles of `tabern serve`; apart, each is drained by itself';
const MOVE = 'it moves the file of SQLite to PostgreSQL';
const CLOCK = 'it sets the clock of a process, and that of cores apart is PostgreSQL’s';
const FIRST_KEY = 'cores apart are given their key by the tests, as by an operator';
const CTRL_C = 'a terminal has all processes of `tabern serve`; apart, each has a supervisor';
const METRICS = '`tabern serve` has the figures of all roles once; apart, each has its own';

const LOCK = 'it is the file of SQLite that is locked and has a version';
const ORDER = 'two calls at once are in the order of the thread of SQLite';
const DAMAGE = 'it damages the file of SQLite';
const BACKUP = 'a backup copies the file of SQLite; that of PostgreSQL is by pg_dump';

/** Of one process with all roles: skipped with the roles apart, TABERN_TEST_TOPOLOGY=split. */
const ONE_PROCESS: Reasons = {
  'journey/console/looks': { [ALL]: LOOKS },
  'journey/console/operator': { 'a backup is a file that a restore accepts': BACKUP },
  'journey/console/trouble': {
    'a service whose clock is set an hour on: each session once, and its age': CLOCK,
  },
  'journey/operations/backup': { [ALL]: BACKUP },
  'journey/operations/drain': {
    'a draining service starts nothing, and ends with its last session': DRAIN,
    'a second signal ends the sessions of a draining service': DRAIN,
  },
  'journey/operations/metrics': {
    'one response has the metrics of all roles, without ids, keys or addresses': METRICS,
  },
  'journey/operations/move': { [ALL]: MOVE },
  'journey/operations/upgrade/ends': { [ALL]: UPGRADE },
  'journey/operations/upgrade/load': { [ALL]: UPGRADE },
  'journey/operations/upgrade/postgres-tls': { [ALL]: UPGRADE },
  start: {
    'the first API key is printed at each start until it has been used': FIRST_KEY,
    'a running invocation completes after Ctrl-C, a SIGINT to the process group': CTRL_C,
  },
};

/** Of SQLite's own files: skipped where TABERN_TEST_DATABASE names another engine. */
const ONE_FILE: Reasons = {
  'core/api/idle': { [ALL]: 'it watches the messages to the thread of SQLite' },
  'core/backup': { [ALL]: BACKUP },
  'core/files/disk-space': {
    'on a full disk running work ends and new work is refused, until there is space':
      'the disk that fills is that of the file of SQLite',
  },
  'core/files/s3': { 'a backup names the bucket, and a restored directory needs it': BACKUP },
  'core/functions/deletion': {
    'a call that waits for an invocation ends with 404 when its function is deleted': ORDER,
  },
  'core/functions/schedules': {
    'a clock that is set back computes the next time again, and starts nothing':
      'stored times are moved in SQLite alone: the clock is that of the server',
  },
  'core/functions/waits': { 'closing core ends waiting calls with the current state': ORDER },
  'core/main': {
    'another process is refused while one runs on the directory': LOCK,
    'a data directory of a newer version is refused': LOCK,
  },
  'core/maintenance/doctor': {
    'a damaged database is found, with the fix to restore': DAMAGE,
    'a database that fails while files are looked for is found': DAMAGE,
  },
  'core/maintenance/move': { [ALL]: 'only files beside the file of SQLite are moved to a bucket' },
  'core/projects/audit': {
    'a backup is an event, and one that its reader leaves was cancelled': BACKUP,
  },
  'core/projects/operator-logins': {
    'an operator login makes no other login and takes no master key': BACKUP,
  },
};

export const SKIPS: readonly {
  setting: string;
  isSet(value: string): boolean;
  reasons: Reasons;
}[] = [
  { setting: 'TABERN_TEST_TOPOLOGY', isSet: (value) => value === 'split', reasons: ONE_PROCESS },
  { setting: 'TABERN_TEST_DATABASE', isSet: isPostgres, reasons: ONE_FILE },
];

function isPostgres(value: string): boolean {
  return value === 'postgres' || value.startsWith('postgres:');
}

/** Why the test is skipped; undefined for one that runs. */
export function skipOf(suite: string, test: string): string | undefined {
  for (const { setting, isSet, reasons } of SKIPS) {
    const own = reasons[suite];
    const reason = own?.[test] ?? own?.[ALL];
    if (reason !== undefined && isSet(process.env[setting] ?? '')) return reason;
  }
  return undefined;
}

/** The tests of a suite that are skipped somewhere. */
export function namedIn(suite: string): string[] {
  const named = SKIPS.flatMap(({ reasons }) => Object.keys(reasons[suite] ?? {}));
  return named.filter((name) => name !== ALL);
}
