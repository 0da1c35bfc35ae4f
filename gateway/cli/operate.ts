/**
 * The command table of operators: console, keys, projects, tokens, certs, backup, upgrade, doctor.
 * They run on the machine of the data directory; folder operator/ has their code.
 */
import type { Env } from '../../proto/common/env.ts';
import { environment } from '../config.ts';
import { type Command, type Flag, flag, type Given } from './command.ts';

const LIMITS: readonly Flag[] = [
  flag('--sessions <count>', 'concurrent sessions, without sessions of invocations'),
  flag('--invocations <count>', 'concurrent invocations'),
  flag('--queue <count>', 'pending invocations and builds'),
  flag('--contexts <count>', 'contexts'),
  flag('--context-mib <count>', 'MiB of contexts'),
  flag('--download-mib <count>', 'MiB of files that pages downloaded'),
  flag('--recording-mib <count>', 'MiB of recordings'),
  flag('--upload-mib <count>', 'MiB of archives, bundles and extensions'),
  flag('--log-mib <count>', 'MiB of protocol logs and results'),
];

const keys = () => import('./operator/keys.ts');
const projects = () => import('./operator/projects.ts');
const tokens = () => import('./operator/tokens.ts');
const certs = () => import('./operator/certs.ts');
const DAYS = flag('--days <count>', 'days of validity', '365');

export const OPERATE: readonly Command[] = [
  operator('console', {
    description: 'print a link that logs a browser in to the console, and open it',
    example: 'tabern console --project default',
    flags: [
      flag('--project <project>', 'project that the login sees (id or name); default: default'),
      flag('--operator', 'the login sees all projects and the pages of the operator'),
      flag(
        '--base-url <url>',
        'URL of the service; default TABERN_BASE_URL, TABERN_PUBLIC_URL, or its own address',
      ),
      flag('--no-open', 'print the link only'),
    ],
    load: async () => (await import('./operator/console.ts')).openConsole,
  }),
  operator('keys create <project>', {
    description: 'create an API key of a project (id or name); it is shown once',
    example: 'tabern keys create default --name ci',
    flags: [flag('--name <name>', 'label of the key in lists')],
    load: async () => (await keys()).createKey,
  }),
  operator('keys list', {
    description: 'list API keys with their public part, last use and revocation',
    example: 'tabern keys list --project default',
    flags: [flag('--project <project>', 'only keys of this project (id or name)')],
    load: async () => (await keys()).listKeys,
  }),
  operator('keys revoke <key-id>', {
    description: 'revoke an API key and close its connections',
    example: 'tabern keys revoke k3v9x0ab',
    load: async () => (await keys()).revokeKey,
  }),
  operator('projects create <name>', {
    description: 'create a project',
    example: 'tabern projects create shop --sessions 10',
    flags: LIMITS,
    load: async () => (await projects()).createProject,
  }),
  operator('projects list', {
    description: 'list projects with their usage and limits',
    example: 'tabern projects list --json',
    load: async () => (await projects()).listProjects,
  }),
  operator('projects limits <project>', {
    description: 'show the limits of a project (id or name) and set the given ones',
    example: 'tabern projects limits shop --sessions 10 --invocations 5 --queue 100',
    flags: LIMITS,
    load: async () => (await projects()).limitProject,
  }),
  operator('projects usage <project>', {
    description: 'show the usage of a project',
    example: 'tabern projects usage shop',
    load: async () => (await projects()).usageOfProject,
  }),
  operator('tokens rotate <role>', {
    description: "create a role's next token, which core accepts beside the current one",
    example: 'tabern tokens rotate runner --data /srv/tabern',
    load: async () => (await tokens()).rotateToken,
  }),
  operator('tokens finish <role>', {
    description: "make a role's next token the current one",
    example: 'tabern tokens finish runner --data /srv/tabern',
    load: async () => (await tokens()).finishToken,
  }),
  certificates('create <name>', {
    description: 'create a certificate and key for a role, and an authority when there is none',
    example: 'tabern certs create core --host core.internal,10.0.0.5',
    flags: [flag('--host <hosts>', 'names and addresses besides <name>, comma-separated'), DAYS],
    load: async () => (await certs()).createCert,
  }),
  certificates('renew <name>', {
    description: 'renew a certificate, with the same key and names',
    example: 'tabern certs renew core --days 90',
    flags: [DAYS],
    load: async () => (await certs()).renewCert,
  }),
  certificates('list', {
    description: 'list certificates with their names and the end of their validity',
    example: 'tabern certs list',
    load: async () => (await certs()).listCerts,
  }),
  operator('backup <file>', {
    description: 'back up all stored data into one tar, while the service runs or not',
    example: 'tabern backup /backups/tabern-$(date +%F).tar.zst',
    flags: [
      flag('--with-keys', 'include the master key: a reader of the file can decrypt every secret'),
      flag('--force', 'replace a file that exists'),
    ],
    async load() {
      const { offlineBackup: offline } = await import('../../core/maintenance/backup/offline.ts');
      const { backup } = await import('./operator/backup.ts');
      return (file, given, env) => backup(file, given, { env, offline });
    },
  }),
  operator('restore <file>', {
    description: 'restore a backup into a new data directory',
    example: 'tabern restore tabern.tar.zst --data /srv/tabern --master-key master.key',
    flags: [
      flag(
        '--master-key <path>',
        'master key of the backed-up data directory, if not in the backup',
      ),
    ],
    async load() {
      const { restoreBackup } = await import('../../core/maintenance/backup/restore.ts');
      const { restore } = await import('./operator/restore.ts');
      return (file, given, env) => restore(file, given, { env, restoreBackup });
    },
  }),
  operator('move', {
    description:
      'take a data directory over to a bucket and to PostgreSQL, while no service runs on it',
    example: 'tabern move --data /srv/tabern --s3 s3://tabern/files',
    flags: [
      flag('--s3 <bucket>', 's3://bucket/prefix; server and keys are the TABERN_BLOBS_*'),
      flag('--to <url>', 'postgres://... of an empty database; or set TABERN_DATABASE_URL'),
    ],
    async load() {
      const { moveBlobs, moveToPostgres } = await import('../../core/maintenance/move.ts');
      const { move } = await import('./operator/move.ts');
      return (_, given, env) => move(given, { env, moveBlobs, moveToPostgres });
    },
  }),
  operator('drain', {
    description: 'let the service, or a runner, end its work and then itself',
    example: 'tabern drain --seconds 3600 --wait',
    flags: [
      flag('--seconds <count>', 'time for running work; default TABERN_DRAIN_S of the process'),
      flag('--wait', 'return when the process has ended'),
    ],
    load: async () => (await import('./operator/drain.ts')).drain,
  }),
  operator('upgrade', {
    description:
      'let this program take over from the running `tabern serve`, and keep its sessions',
    example: 'tabern upgrade --data /srv/tabern',
    load: async () => (await import('./operator/upgrade.ts')).upgrade,
  }),
  operator('doctor', {
    description: 'check the machine, the settings and the stored data',
    example: 'tabern doctor --data /srv/tabern',
    flags: [flag('--deep', 'verify the hash of every stored file')],
    async load() {
      const { checkData } = await import('../../core/maintenance/doctor.ts');
      const { checkMachine } = await import('../../runner/machine/doctor.ts');
      const { doctor } = await import('./operator/doctor.ts');
      return (_, given, env) => doctor(given, { env, checkData, checkMachine });
    },
  }),
];

type Shown = Pick<Command, 'description' | 'example' | 'flags'>;

/** Runs with the argument of the command, '' without one. */
type Run = (argument: string, given: Given, env: Env) => Promise<number>;

/** These need a directory of their own only. */
function certificates(
  usage: string,
  {
    load,
    flags = [],
    ...shown
  }: Shown & { load(): Promise<(name: string, given: Given) => Promise<number>> },
): Command {
  const dir = flag('--dir <directory>', 'directory of the certificates', './tabern_certs');
  return {
    usage: `certs ${usage}`,
    kind: 'local',
    flags: [...flags, dir, flag('--json', 'print JSON alone')],
    ...shown,
    run: async ([name = ''], given) => (await load())(name, given),
  };
}

function operator(usage: string, { load, ...shown }: Shown & { load(): Promise<Run> }): Command {
  return {
    usage,
    kind: 'operator',
    ...shown,
    run: async ([argument = ''], given) => (await load())(argument, given, environment()),
  };
}
