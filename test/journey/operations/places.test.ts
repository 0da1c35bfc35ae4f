/**
 * One project fills all slots with endless work: a session, an invocation and a build of another
 * project start nevertheless.
 */
import { suite } from 'uvu';
import { is, ok } from 'uvu/assert';
import {
  type Build,
  ended,
  type Invocation,
  invoke,
  publish,
} from '../../support/clients/functions.ts';
import { keyOfNewProject } from '../../support/clients/second-tenant.ts';
import { until } from '../../support/poll.ts';
import { boot, type Stack } from '../../support/service/stack.ts';

const journey = suite('journey/operations/places');

const PLACES = { TABERN_SESSIONS_MAX: '2', TABERN_INVOCATIONS_MAX: '2', TABERN_BUILDS_MAX: '2' };
const MANIFEST = '{"name":"held","version":"1.0.0","private":true,"type":"module"}';
const NEVER = 'new Promise((resolve) => setTimeout(resolve, 900_000))';
const HELD = {
  'package.json': MANIFEST,
  'index.ts': `import { defineFn } from 'tabern';\ndefineFn('held', () => ${NEVER});\n`,
};
/** The bundle does not finish loading; the build ends after two minutes. */
const HELD_BUILD = { 'package.json': MANIFEST, 'index.ts': `await ${NEVER};\n` };

type Tenant = Pick<Stack, 'call' | 'projectId' | 'logs'>;
type One = { id: string; status: string };

async function newTenant(stack: Stack): Promise<Tenant> {
  const headers = { 'x-svc-api-key': await keyOfNewProject(stack.dataDir) };
  const call: Stack['call'] = (path, init) => stack.call(path, { ...init, headers });
  const [project] = await call<One[]>('/v1/projects');
  return { call, projectId: project?.id ?? '', logs: stack.logs };
}

/** The first project's requests of a kind: more than the slots, which are two of each runner. */
async function crowdOf(stack: Stack): Promise<null[]> {
  return Array((await stack.pidsOf('runner')).length * 2 + 1).fill(null);
}

/** Resolves when all requests are accepted and some are running. */
const filled = (list: () => Promise<One[]>, { length }: null[]) =>
  until(async () => {
    const all = await list();
    return all.length === length && all.some(({ status }) => status === 'RUNNING');
  });

/** Some run, one of each runner at most, and the others wait. */
async function expectKept(list: () => Promise<One[]>, { length }: null[]): Promise<void> {
  const all = (await list()).map(({ status }) => status);
  const running = all.filter((status) => status === 'RUNNING').length;
  const pending = all.filter((status) => status === 'PENDING').length;
  is(running + pending, length, all.join());
  ok(running >= 1 && running <= (length - 1) / 2, all.join());
}

journey('invocations of one project leave a slot to another project', async () => {
  await using stack = await boot({ env: PLACES });
  const [other, many] = [await newTenant(stack), await crowdOf(stack)];
  const { held = '' } = await publish(stack, HELD);
  const { trivial = '' } = await publish(other);
  const invocations = await Promise.all(many.map(() => invoke(stack, held)));
  const path = ({ id }: One) => `/v1/functions/invocations/${id}`;
  const list = () => Promise.all(invocations.map((one) => stack.call<Invocation>(path(one))));
  await filled(list, many);
  const { id } = await invoke(other, trivial);
  is((await ended(other, id)).status, 'COMPLETED');
  await expectKept(list, many);
  const cancel = (one: One) => stack.fetch(`${path(one)}/cancel`, { method: 'POST' });
  await Promise.all(invocations.map(cancel));
});

journey('sessions of one project leave a slot to another project', async () => {
  await using stack = await boot({ env: PLACES });
  const [other, many] = [await newTenant(stack), await crowdOf(stack)];
  // the response arrives when the browser has started, or after 25 s
  const creating = many.map(() => stack.call('/v1/sessions', { json: { keepAlive: true } }));
  const list = () => stack.call<One[]>('/v1/sessions');
  await filled(list, many);
  const { id } = await other.call<One>('/v1/sessions', { json: { keepAlive: true } });
  const begun = async () => {
    const { status } = await other.call<One>(`/v1/sessions/${id}`);
    return status !== 'PENDING' && status;
  };
  is(await until(begun), 'RUNNING');
  await expectKept(list, many);
  const release = (one: One) =>
    stack.call(`/v1/sessions/${one.id}`, { json: { status: 'REQUEST_RELEASE' } });
  await Promise.all((await list()).map(release));
  await Promise.all(creating);
});

journey('builds of one project leave a slot to another project', async () => {
  await using stack = await boot({ env: PLACES });
  const [other, many] = [await newTenant(stack), await crowdOf(stack)];
  const building = many.map(() => publish(stack, HELD_BUILD).catch(() => {}));
  const list = async () => (await stack.call<{ data: Build[] }>('/v1/functions/builds')).data;
  await filled(list, many);
  await publish(other);
  await expectKept(list, many);
  await stack.kill('SIGTERM'); // the builds are not awaited
  await Promise.all(building);
});

journey.run();
