/** `tabern projects`: creates and lists projects, and shows their limits and usage. */

import { ConfigError, type Env } from '../../../proto/common/env.ts';
import { columns } from '../../../proto/common/text-table.ts';
import type { OperatedProject, ProjectLimits } from '../../../proto/gen/tabern/v1/operators.pb.ts';
import type { StorageQuota } from '../../../proto/gen/tabern/v1/projects.pb.ts';
import { notFound } from '../../../proto/rpc/errors.ts';
import { sizeText } from '../../../proto/terminal/size.ts';
import { EXIT, Exit } from '../../process/exit-codes.ts';
import type { Given } from '../command.ts';
import { withCore } from './core-client.ts';
import { answer, note, print } from './terminal.ts';

const MIB = 1 << 20;
const LIMIT_NAMES = [
  ...(['sessions', 'invocations', 'queue', 'contexts'] as const),
  ...(['contextMib', 'downloadMib', 'recordingMib', 'uploadMib', 'logMib'] as const),
] satisfies (keyof ProjectLimits)[];

export async function createProject(name: string, given: Given, env: Env): Promise<number> {
  const limits = limitsOf(given);
  const { project } = await withCore(given, env, ({ operators, call }) =>
    operators.createProject({ name, limits }, call),
  );
  return answer(given, shown(project), () => {
    print(project?.project?.id ?? '');
    note(`project ${name} created; \`tabern keys create ${name}\` creates a key for it`);
  });
}

export async function listProjects(_: string, given: Given, env: Env): Promise<number> {
  const projects = await all(given, env);
  return answer(given, projects.map(shown), () => {
    const rows = projects.map((one) => [
      ...[one.project?.id, one.project?.name],
      `${one.sessions} of ${one.limits?.sessions}`,
      `${one.invocations} of ${one.limits?.invocations}`,
      `${one.queued} of ${one.limits?.queue}`,
    ]);
    print(columns(['ID', 'NAME', 'SESSIONS', 'INVOCATIONS', 'QUEUED'], rows));
  });
}

/** Without an option, prints the limits. */
export async function limitProject(project: string, given: Given, env: Env): Promise<number> {
  const limits = limitsOf(given);
  const isChange = Object.keys(limits).length > 0;
  const one = isChange
    ? await withCore(given, env, async ({ operators, call }) => {
        return (await operators.setProjectLimits({ project, limits }, call)).project;
      })
    : await find(project, given, env);
  return answer(given, shown(one), () => {
    print(columns(['LIMIT', 'VALUE'], Object.entries(one?.limits ?? {})));
  });
}

export async function usageOfProject(project: string, given: Given, env: Env): Promise<number> {
  const one = await find(project, given, env);
  const { browserMinutes, proxyBytes, sessions, invocations, queued, storage } = one;
  // the limit as `projects limits` takes it
  const stored = ({ used, limit }: StorageQuota = { used: 0, limit: 0 }): string =>
    `${sizeText(used)} of ${limit / MIB} MiB`;
  return answer(given, shown(one), () => {
    const rows = Object.entries({
      'browser minutes': browserMinutes,
      'proxy traffic': sizeText(proxyBytes),
      'sessions now': sessions,
      'invocations now': invocations,
      'pending invocations': queued,
      contexts: `${storage?.contexts?.used} of ${storage?.contexts?.limit}`,
      'context content': stored(storage?.contextBytes),
      downloads: stored(storage?.downloadBytes),
      recordings: stored(storage?.recordingBytes),
      uploads: stored(storage?.uploadBytes),
      logs: stored(storage?.logBytes),
    });
    print(columns(['USED', 'AMOUNT'], rows));
  });
}

function all(given: Given, env: Env): Promise<OperatedProject[]> {
  return withCore(given, env, async ({ operators, call }) => {
    return (await operators.listAllProjects({}, call)).projects;
  });
}

async function find(wanted: string, given: Given, env: Env): Promise<OperatedProject> {
  const projects = await all(given, env);
  const found = projects.find(({ project }) => project?.id === wanted || project?.name === wanted);
  if (!found) throw new Exit(EXIT.failed, notFound('Project', wanted).message);
  return found;
}

function limitsOf(given: Given): ProjectLimits {
  const limits: ProjectLimits = {};
  for (const name of LIMIT_NAMES) {
    const value = given[name];
    if (value === undefined) continue;
    if (typeof value !== 'string' || !/^\d{1,9}$/.test(value)) {
      const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      throw new ConfigError(`--${flag} must be a whole number`);
    }
    limits[name] = Number(value);
  }
  return limits;
}

function shown(one: OperatedProject | undefined) {
  const { project, limits, sessions, invocations, queued } = one ?? {};
  const { id, name, createdAt } = project ?? {};
  const usage = { browserMinutes: one?.browserMinutes, proxyBytes: one?.proxyBytes };
  const storage = one?.storage;
  return { id, name, createdAt, limits, now: { sessions, invocations, queued }, usage, storage };
}
