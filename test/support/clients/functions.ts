/** Publishes and invokes functions over the public interface, for tests of other subjects. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from 'tar';
import { must } from '../../../proto/common/must.ts';
import { until } from '../poll.ts';
import type { Stack } from '../service/stack.ts';
import { tempDirectory, writeTree } from '../temp.ts';

/** A build without packages takes seconds, and the load of a hostile bundle up to two minutes. */
const BUILD_LIMIT_MS = 300_000;

/** A project with one function, `trivial`, which returns its params and needs no package. */
export const TRIVIAL_PROJECT = {
  'package.json': '{"name":"trivial","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('trivial', async (ctx, params) => ({ params, invocation: ctx.invocation.id }));
`,
};

export type Build = {
  id: string;
  status: string;
  cause?: { code: string; message?: string };
  builtFunctions?: { id: string; name: string; createdVersion: { id: string } }[];
};
export type Invocation = {
  id: string;
  sessionId: string;
  status: string;
  results?: unknown;
  cause?: { code: string; message?: string };
  createdAt: string;
  startedAt: string;
  endedAt?: string;
};

/** Publishes the files; returns the ids of the functions by name. Throws when the build fails. */
export async function publish(
  stack: Pick<Stack, 'call' | 'projectId' | 'logs'>,
  files: Readonly<Record<string, string>> = TRIVIAL_PROJECT,
): Promise<Record<string, string>> {
  await using dir = tempDirectory();
  writeTree(dir.path, files);
  const form = new FormData();
  form.set('metadata', JSON.stringify({ entrypoint: 'index.ts', projectId: stack.projectId }));
  form.set('archive', await archiveOf(dir.path, Object.keys(files)), 'archive.tar.gz');
  const init = { method: 'POST', body: form };
  const { id } = await stack.call<Build>('/v1/functions/builds', init);
  const build = await until(async () => {
    const one = await stack.call<Build>(`/v1/functions/builds/${id}`);
    return isOver(one.status) && one;
  }, BUILD_LIMIT_MS);
  if (build.status !== 'COMPLETED') {
    throw new Error(`the build failed: ${JSON.stringify(build.cause)}\n${stack.logs()}`);
  }
  const built = must(build.builtFunctions, 'builtFunctions');
  return Object.fromEntries(built.map((one) => [one.name, one.id]));
}

/** Invokes the function; returns the invocation as accepted. */
export function invoke(
  stack: Pick<Stack, 'call'>,
  functionId: string,
  params = {},
): Promise<Invocation> {
  return stack.call(`/v1/functions/${functionId}/invoke`, { json: { params } });
}

/** Returns the invocation after it has ended. */
export function ended(
  stack: Pick<Stack, 'call'>,
  id: string,
  limitMs = 120_000,
): Promise<Invocation> {
  return until(async () => {
    const one = await stack.call<Invocation>(`/v1/functions/invocations/${id}`);
    return isOver(one.status) && one;
  }, limitMs);
}

/** Whether a build or an invocation has ended. */
export function isOver(status: string): boolean {
  return status === 'COMPLETED' || status === 'FAILED';
}

async function archiveOf(root: string, paths: string[]): Promise<Blob> {
  const file = join(root, 'archive.tar.gz');
  await create({ cwd: root, gzip: true, file, portable: true }, paths);
  return new Blob([readFileSync(file)], { type: 'application/gzip' });
}
