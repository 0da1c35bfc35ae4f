/**
 * A login that is kept in a context, with real Chromes, a real site and the public interface. Each
 * test checks the state of the next session.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ended, type Invocation, publish } from '../../support/clients/functions.ts';
import { type LoginSite, loginProject, startLogin } from '../../support/clients/login.ts';
import { keyOfNewProject } from '../../support/clients/second-tenant.ts';
import { until } from '../../support/poll.ts';
import { boot, type Stack } from '../../support/service/stack.ts';

const journey = suite('journey/sessions/context');

type Scene = AsyncDisposable & {
  stack: Stack;
  site: LoginSite;
  contextId: string;
  login: string;
  visit: string;
};

async function openScene(): Promise<Scene> {
  await using cleanup = new AsyncDisposableStack();
  const site = cleanup.use(await startLogin());
  const stack = cleanup.use(await boot());
  const { id: contextId } = await stack.call<{ id: string }>('/v1/contexts', { json: {} });
  const { login = '', visit = '' } = await publish(stack, loginProject(contextId));
  const kept = cleanup.move();
  const dispose = () => kept.disposeAsync();
  return { stack, site, contextId, login, visit, [Symbol.asyncDispose]: dispose };
}

type Go = { path: string; persist?: boolean; next?: unknown; timeout?: number };

function start(scene: Scene, { path, persist, next, timeout }: Go): Promise<Invocation> {
  const { stack, site, contextId, login, visit } = scene;
  const context = { id: contextId, persist: persist ?? false };
  const sessionCreateParams = {
    ...(persist === undefined ? {} : { browserSettings: { context } }),
    ...(timeout === undefined ? {} : { timeout }),
  };
  const json = { params: { url: site.url + path, next }, sessionCreateParams };
  return stack.call(`/v1/functions/${persist === undefined ? login : visit}/invoke`, { json });
}

async function go(scene: Scene, wanted: Go): Promise<unknown> {
  const { id } = await start(scene, wanted);
  const { status, results, cause } = await ended(scene.stack, id);
  is(status, 'COMPLETED', `${JSON.stringify(cause)}\n${scene.stack.logs()}`);
  return results;
}

async function warnings({ stack }: Scene, id: string): Promise<string[]> {
  type Logs = { logs: { message: string; level: string }[] };
  const { logs } = await stack.call<Logs>(`/v1/functions/invocations/${id}/logs`);
  return logs.filter(({ level }) => level === 'warn').map(({ message }) => message);
}

/** Resolves when the handler has visited the site. */
async function visited({ stack }: Scene, id: string): Promise<void> {
  const path = `/v1/functions/invocations/${id}/logs`;
  await until(async () => (await stack.call(path))['total'] === 1);
}

function loggedIn({ site }: Scene) {
  const { local, tab, indexed } = site.secrets;
  return { cookie: true, session: true, local, tab, indexed };
}

const OUT = { cookie: false, session: false, local: null, tab: null, indexed: null };

journey('a login saved with sessionConfig is loaded with sessionCreateParams', async () => {
  await using scene = await openScene();
  equal(await go(scene, { path: '/', persist: false }), OUT);
  await go(scene, { path: '/login' });
  equal(await go(scene, { path: '/', persist: false }), loggedIn(scene));
  // not saved without persist
  equal(await go(scene, { path: '/logout', persist: false }), {
    ...loggedIn(scene),
    ...out(),
  });
  equal(await go(scene, { path: '/', persist: true }), loggedIn(scene));
  await scene.stack.restart();
  equal(await go(scene, { path: '/', persist: false }), loggedIn(scene));
  await until(() => !hasProfile(scene)); // the outcome is reported before Chrome ends
  await expectSealed(scene);
  await expectForeign(scene);
});

/** The response of /logout, whose request still has the cookies. */
function out() {
  return { local: null, tab: null, indexed: null };
}

/** Whether a session has its context open. */
function hasProfile({ stack }: Scene): boolean {
  const names = runsOf(stack).flatMap((run) =>
    entriesOf(run).flatMap((name) => entriesOf(join(run, name))),
  );
  return names.some((name) => name.startsWith('context-'));
}

/** Neither a file nor its name contains a secret. */
async function expectSealed({ stack, site }: Scene): Promise<void> {
  ok((await headsOf(stack)).includes('TBCX\x01'));
  for await (const { place, text } of stack.stored.texts()) {
    if (/\/cache\//.test(place)) continue;
    // the database has the results of invocations
    const mayTell = /\/tabern\.db|^table /.test(place);
    for (const [name, secret] of Object.entries(site.secrets)) {
      if (mayTell && name !== 'cookie' && name !== 'session') continue;
      is(`${place} ${text}`.includes(secret), false, `${name} in ${place}`);
    }
  }
}

/** The first bytes of each blob. */
async function headsOf({ stored: { blobs } }: Stack): Promise<string[]> {
  const names = await blobs.names();
  const all = await Promise.all(names.map((name) => blobs.read(name)));
  return all.map((bytes) => bytes.toString('latin1', 0, 5));
}

/** A key of another project cannot read, use or delete the context. */
async function expectForeign({ stack, contextId }: Scene): Promise<void> {
  const headers = { 'x-svc-api-key': await keyOfNewProject(stack.dataDir) };
  const call = keyed(stack, headers);
  const [project] = await call<{ id: string }[]>('/v1/projects');
  const path = `/v1/contexts/${contextId}`;
  equal(await stack.call('/v1/contexts', { headers }).then(({ data }) => data), []);
  for (const [method, at] of [
    ['GET', path],
    ['PUT', path],
    ['DELETE', path],
    ['GET', `${path}/download`],
  ]) {
    const answer = await stack.fetch(must(at, 'path'), { method: must(method, 'method'), headers });
    is(answer.status, 404, `${method} ${at}`);
  }
  const projectId = must(project, 'the other project').id;
  const { trivial } = await publish({ call, projectId, logs: stack.logs });
  const json = { sessionCreateParams: { browserSettings: { context: { id: contextId } } } };
  const used = await stack.fetch(`/v1/functions/${trivial}/invoke`, { headers, json });
  is(used.status, 404);
  is((await stack.fetch(path)).status, 200);
}

function keyed(stack: Stack, headers: Record<string, string>): Stack['call'] {
  return (path, init) => stack.call(path, { ...init, headers });
}

journey('the context is saved when the handler throws or times out', async () => {
  await using scene = await openScene();
  const thrown = await start(scene, { path: '/login', next: 'throw' });
  is((await ended(scene.stack, thrown.id)).cause?.code, 'WORKLOAD_ERROR');
  equal(await go(scene, { path: '/', persist: false }), loggedIn(scene));
  const hung = await start(scene, { path: '/logout', persist: true, next: 'hang', timeout: 60 });
  is((await ended(scene.stack, hung.id, 240_000)).cause?.code, 'TIMED_OUT');
  equal(await go(scene, { path: '/', persist: false }), OUT);
  for (const { id } of [thrown, hung]) equal(await warnings(scene, id), []);
});

journey('of two sessions of a context, the last save wins, with a warning', async () => {
  await using scene = await openScene();
  const slow = await start(scene, { path: '/login', next: 'gate' });
  await visited(scene, slow.id);
  const quick = await start(scene, { path: '/', persist: true });
  equal((await ended(scene.stack, quick.id)).results, OUT);
  scene.site.open();
  is((await ended(scene.stack, slow.id)).status, 'COMPLETED');
  equal(await warnings(scene, quick.id), []);
  match((await warnings(scene, slow.id)).join(), /another session saved this context/);
  equal(await go(scene, { path: '/', persist: false }), loggedIn(scene));
});

journey('a session continues when its context is deleted, and its save is dropped', async () => {
  await using scene = await openScene();
  const { stack, contextId } = scene;
  const { id } = await start(scene, { path: '/login', next: 'gate' });
  await visited(scene, id);
  const deleted = await stack.fetch(`/v1/contexts/${contextId}`, { method: 'DELETE' });
  is(deleted.status, 204);
  scene.site.open();
  is((await ended(stack, id)).status, 'COMPLETED');
  match((await warnings(scene, id)).join(), /was not saved: it was deleted meanwhile/);
  const again = await stack.fetch(`/v1/functions/${scene.login}/invoke`, { json: {} });
  is(again.status, 404);
  const heads = await headsOf(stack);
  is(
    heads.some((head) => head.startsWith('TBCX')),
    false,
  );
});

journey('a runner killed during a save leaves the previous content intact', async () => {
  await using scene = await openScene();
  const { stack } = scene;
  await go(scene, { path: '/login' });
  const { id } = await start(scene, { path: '/logout', persist: true, next: 'gate' });
  await visited(scene, id);
  const runner = await stack.runnerPid(id);
  const cores = await stack.pidsOf('core');
  // a stopped core accepts no save: the runner has begun one when its file exists,
  // and cannot finish it
  for (const pid of cores) process.kill(pid, 'SIGSTOP');
  try {
    scene.site.open();
    await until(() => runsOf(stack).some(isSaving));
    process.kill(runner, 'SIGKILL');
  } finally {
    for (const pid of cores) process.kill(pid, 'SIGCONT');
  }
  const { status, cause } = await ended(stack, id);
  is(status, 'FAILED');
  is(cause?.code, 'INTERNAL_ERROR');
  equal(await go(scene, { path: '/', persist: false }), loggedIn(scene));
});

/** Where runners have the files of what runs. */
function runsOf({ stored }: Stack): string[] {
  return stored.directories().map((dir) => join(dir, 'run'));
}

/** The encrypted file is created after the end of Chrome. */
function isSaving(run: string): boolean {
  return entriesOf(run, true).some((name) => name.endsWith('/saved'));
}

/** None of a file, and of a directory that is missing or in which one was removed meanwhile. */
function entriesOf(path: string, recursive = false): string[] {
  try {
    return readdirSync(path, { recursive, encoding: 'utf8' });
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (['ENOENT', 'ENOTDIR'].includes(code)) return [];
    throw error;
  }
}

journey.run();
