/** Commands for the operator, on the machine of the data directory. */
import { environment } from '../config.ts';
import type { Command, Flag } from './command.ts';

const LIMITS: readonly Flag[] = [
  {
    flags: '--sessions <count>',
    description: 'concurrent sessions, without sessions of invocations',
  },
  { flags: '--invocations <count>', description: 'concurrent invocations' },
  { flags: '--queue <count>', description: 'pending invocations and builds' },
  { flags: '--contexts <count>', description: 'contexts' },
  { flags: '--context-mib <count>', description: 'MiB of contexts' },
  { flags: '--download-mib <count>', description: 'MiB of files that pages downloaded' },
  { flags: '--recording-mib <count>', description: 'MiB of recordings' },
  { flags: '--upload-mib <count>', description: 'MiB of archives, bundles and extensions' },
  { flags: '--log-mib <count>', description: 'MiB of protocol logs and results' },
];

const KEYS: readonly Command[] = [
  {
    usage: 'keys create <project>',
    description: 'create an API key of a project (id or name); it is shown once',
    example: 'tabern keys create default --name ci',
    kind: 'operator',
    flags: [{ flags: '--name <name>', description: 'label of the key in lists' }],
    run: async ([project = ''], given) =>
      (await import('./operator/keys.ts')).createKey(project, given, environment()),
  },
  {
    usage: 'keys list',
    description: 'list API keys with their public part, last use and revocation',
    example: 'tabern keys list --project default',
    kind: 'operator',
    flags: [
      { flags: '--project <project>', description: 'only keys of this project (id or name)' },
    ],
    run: async (_, given) => (await import('./operator/keys.ts')).listKeys(given, environment()),
  },
  {
    usage: 'keys revoke <key-id>',
    description: 'revoke an API key and close its connections',
    example: 'tabern keys revoke k3v9x0ab',
    kind: 'operator',
    run: async ([id = ''], given) =>
      (await import('./operator/keys.ts')).revokeKey(id, given, environment()),
  },
];

const PROJECTS: readonly Command[] = [
  {
    usage: 'projects create <name>',
    description: 'create a project',
    example: 'tabern projects create shop --sessions 10',
    kind: 'operator',
    flags: LIMITS,
    run: async ([name = ''], given) =>
      (await import('./operator/projects.ts')).createProject(name, given, environment()),
  },
  {
    usage: 'projects list',
    description: 'list projects with their usage and limits',
    example: 'tabern projects list --json',
    kind: 'operator',
    run: async (_, given) =>
      (await import('./operator/projects.ts')).listProjects(given, environment()),
  },
  {
    usage: 'projects limits <project>',
    description: 'show the limits of a project (id or name) and set the given ones',
    example: 'tabern projects limits shop --sessions 10 --invocations 5 --queue 100',
    kind: 'operator',
    flags: LIMITS,
    run: async ([project = ''], given) =>
      (await import('./operator/projects.ts')).limitProject(project, given, environment()),
  },
  {
    usage: 'projects usage <project>',
    description: 'show the usage of a project',
    example: 'tabern projects usage shop',
    kind: 'operator',
    run: async ([project = ''], given) =>
      (await import('./operator/projects.ts')).usageOfProject(project, given, environment()),
  },
];

const DATA: readonly Command[] = [
  {
    usage: 'backup <file>',
    description: 'back up all stored data into one tar, while the service runs or not',
    example: 'tabern backup /backups/tabern-$(date +%F).tar.zst',
    kind: 'operator',
    flags: [
      {
        flags: '--with-keys',
        description: 'include the master key: a reader of the file can decrypt every secret',
      },
    ],
    run: async ([file = ''], given) => {
      const { offlineBackup: offline } = await import('../../core/maintenance/backup/offline.ts');
      const { backup } = await import('./operator/backup.ts');
      return backup(file, given, { env: environment(), offline });
    },
  },
  {
    usage: 'restore <file>',
    description: 'restore a backup into a new data directory',
    example: 'tabern restore tabern.tar.zst --data /srv/tabern --master-key master.key',
    kind: 'operator',
    flags: [
      {
        flags: '--master-key <path>',
        description: 'master key of the backed-up data directory, if not in the backup',
      },
    ],
    run: async ([file = ''], given) => {
      const { restoreBackup } = await import('../../core/maintenance/backup/restore.ts');
      const { restore } = await import('./operator/restore.ts');
      return restore(file, given, { env: environment(), restoreBackup });
    },
  },
];

const DOCTOR: readonly Command[] = [
  {
    usage: 'doctor',
    description: 'check the machine, the settings and the stored data',
    example: 'tabern doctor --data /srv/tabern',
    kind: 'operator',
    flags: [{ flags: '--deep', description: 'verify the hash of every stored file' }],
    run: async (_, given) => {
      const { checkData } = await import('../../core/maintenance/doctor.ts');
      const { checkMachine } = await import('../../runner/machine/doctor.ts');
      const { doctor } = await import('./operator/doctor.ts');
      return doctor(given, { env: environment(), checkData, checkMachine });
    },
  },
];

export const OPERATE: readonly Command[] = [...KEYS, ...PROJECTS, ...DATA, ...DOCTOR];
