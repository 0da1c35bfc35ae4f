/** Commands for who operates the service, on the machine of its data directory. */
import { environment } from '../config.ts';
import type { Command, Flag } from './command.ts';

const LIMITS: readonly Flag[] = [
  { flags: '--sessions <count>', says: 'sessions at once, without those of invocations' },
  { flags: '--invocations <count>', says: 'invocations that run at once' },
  { flags: '--queue <count>', says: 'invocations, and builds, that may wait' },
  { flags: '--contexts <count>', says: 'contexts' },
  { flags: '--context-mib <count>', says: 'MiB that contexts hold' },
  { flags: '--download-mib <count>', says: 'MiB of files that pages downloaded' },
  { flags: '--recording-mib <count>', says: 'MiB of recordings' },
  { flags: '--upload-mib <count>', says: 'MiB of archives, bundles and extensions' },
  { flags: '--log-mib <count>', says: 'MiB of protocol logs and results' },
];

const KEYS: readonly Command[] = [
  {
    usage: 'keys create <project>',
    says: 'make an API key of a project, by its id or name; it is shown only now',
    example: 'tabern keys create default --name ci',
    kind: 'operator',
    flags: [{ flags: '--name <name>', says: 'what lists call it' }],
    run: async ([project = ''], given) =>
      (await import('./operator/keys.ts')).createKey(project, given, environment()),
  },
  {
    usage: 'keys list',
    says: 'list API keys: their public parts, last use, and whether they are good',
    example: 'tabern keys list --project default',
    kind: 'operator',
    flags: [{ flags: '--project <project>', says: 'of this project alone, by its id or name' }],
    run: async (_, given) => (await import('./operator/keys.ts')).listKeys(given, environment()),
  },
  {
    usage: 'keys revoke <key-id>',
    says: 'end an API key, and close what it opened',
    example: 'tabern keys revoke k3v9x0ab',
    kind: 'operator',
    run: async ([id = ''], given) =>
      (await import('./operator/keys.ts')).revokeKey(id, given, environment()),
  },
];

const PROJECTS: readonly Command[] = [
  {
    usage: 'projects create <name>',
    says: 'make a project',
    example: 'tabern projects create shop --sessions 10',
    kind: 'operator',
    flags: LIMITS,
    run: async ([name = ''], given) =>
      (await import('./operator/projects.ts')).createProject(name, given, environment()),
  },
  {
    usage: 'projects list',
    says: 'list projects, with what they have of what they may',
    example: 'tabern projects list --json',
    kind: 'operator',
    run: async (_, given) =>
      (await import('./operator/projects.ts')).listProjects(given, environment()),
  },
  {
    usage: 'projects limits <project>',
    says: 'show the limits of a project, by its id or name, and set those that are given',
    example: 'tabern projects limits shop --sessions 10 --invocations 5 --queue 100',
    kind: 'operator',
    flags: LIMITS,
    run: async ([project = ''], given) =>
      (await import('./operator/projects.ts')).limitProject(project, given, environment()),
  },
  {
    usage: 'projects usage <project>',
    says: 'show what a project has used',
    example: 'tabern projects usage shop',
    kind: 'operator',
    run: async ([project = ''], given) =>
      (await import('./operator/projects.ts')).usageOfProject(project, given, environment()),
  },
];

const DATA: readonly Command[] = [
  {
    usage: 'backup <file>',
    says: 'copy all that is stored into one tar, while the service runs or not',
    example: 'tabern backup /backups/tabern-$(date +%F).tar.zst',
    kind: 'operator',
    flags: [
      { flags: '--with-keys', says: 'the master key too: who has the file can read every secret' },
    ],
    run: async ([file = ''], given) => {
      const { offlineBackup: offline } = await import('../../core/maintenance/backup/offline.ts');
      const { backup } = await import('./operator/backup.ts');
      return backup(file, given, { env: environment(), offline });
    },
  },
  {
    usage: 'restore <file>',
    says: 'make a data directory from a backup, where there is none yet',
    example: 'tabern restore tabern.tar.zst --data /srv/tabern --master-key master.key',
    kind: 'operator',
    flags: [{ flags: '--master-key <path>', says: 'the key of that data directory, kept apart' }],
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
    says: 'check whether this machine, with these settings, is fit to serve',
    example: 'tabern doctor --data /srv/tabern',
    kind: 'operator',
    flags: [{ flags: '--deep', says: 'read every stored file and compare it with its hash' }],
    run: async (_, given) => {
      const { checkData } = await import('../../core/maintenance/doctor.ts');
      const { checkMachine } = await import('../../runner/machine/doctor.ts');
      const { doctor } = await import('./operator/doctor.ts');
      return doctor(given, { env: environment(), checkData, checkMachine });
    },
  },
];

export const OPERATE: readonly Command[] = [...KEYS, ...PROJECTS, ...DATA, ...DOCTOR];
