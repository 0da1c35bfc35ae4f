/**
 * The command table of operators: console, keys, projects, backup, restore, doctor. They run on the
 * machine of the data directory; folder operator/ has their code.
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

/** Runs with the argument of the command, '' without one. */
type Run = (argument: string, given: Given, env: Env) => Promise<number>;

function operator(
  usage: string,
  { load, ...shown }: Pick<Command, 'description' | 'example' | 'flags'> & { load(): Promise<Run> },
): Command {
  return {
    usage,
    kind: 'operator',
    ...shown,
    run: async ([argument = ''], given) => (await load())(argument, given, environment()),
  };
}
