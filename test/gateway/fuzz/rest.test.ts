/**
 * Z1 of reliability.md: 200 wild requests for each operation of the published description, before a
 * whole core. No answer is a failure of ours, each is as described, and a good request beside them
 * is answered. TABERN_FUZZ_SEED draws others than the usual ones.
 */
import { Agent, request as httpRequest } from 'node:http';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { KEY } from '../../core/boot.ts';
import { type Description, openJudge } from '../../support/judge.ts';
import { openMatrix } from '../tenants/matrix.ts';
import { type Operation, type Wild, wildRequests } from './requests.ts';

const test = suite('gateway/fuzz/rest');

const SEED = Number(process.env['TABERN_FUZZ_SEED'] ?? 7);
const COUNT = 200;
const AT_ONCE = 16;
/** What says that a browser or a runner is not there; there is none here. */
const DECLARED: readonly number[] = [502, 503];

type Answer = { status: number; type: string; text: string };
type Api = {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, { [key: string]: unknown }> };
};

/** As it is: no client that would mend it stands between. */
function send(url: string, agent: Agent, method: string, wild: Wild): Promise<Answer> {
  const { hostname, port } = new URL(url);
  const headers = { 'x-svc-api-key': KEY, ...wild.headers };
  return new Promise((resolve, reject) => {
    const { path, body } = wild;
    const sent = httpRequest({ hostname, port, agent, method, path, headers }, async (answer) => {
      const { statusCode: status = 0, headers: said } = answer;
      resolve({ status, type: said['content-type'] ?? '', text: await text(answer) });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** A runner that has its sessions over as soon as they begin, until the signal aborts. */
async function endSessions(app: Awaited<ReturnType<typeof openMatrix>>, over: AbortSignal) {
  while (!over.aborted) {
    for (const { leaseId } of await app.lease('SESSION', 200)) {
      const { runners } = app.clients;
      await runners.startSession({ leaseId, startMs: app.clock.now() }, app.asRunner);
      const end = { leaseId, end: 'COMPLETED', reason: '', proxyBytes: 0 } as const;
      await runners.completeSession(end, app.asRunner);
    }
  }
}

/** All of them, so many at once; what is wrong with each answer. */
async function sendAll(
  wilds: readonly Wild[],
  one: (wild: Wild) => Promise<string | undefined>,
): Promise<string[]> {
  const faults: string[] = [];
  const left = [...wilds];
  const work = async (): Promise<void> => {
    for (let wild = left.pop(); wild !== undefined; wild = left.pop()) {
      const fault = await one(wild);
      if (fault !== undefined) faults.push(fault);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return faults;
}

test('200 wild requests for each operation are answered as described', async () => {
  await using app = await openMatrix();
  const { url } = app.gateway;
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE + 1 });
  const over = new AbortController();
  using cleanup = new DisposableStack();
  cleanup.defer(() => agent.destroy());
  cleanup.defer(() => over.abort());
  const ending = endSessions(app, over.signal);
  ending.catch(() => undefined); // thrown at the end, unless a fault was found before
  const described: unknown = await (await fetch(`${url}/openapi.json`)).json();
  const judge = openJudge(described as Description);
  const { paths, components } = described as Api;
  const things = { ids: Object.values(app.own.objects), schemas: components.schemas };
  const good = { path: '/v1/projects', headers: {} };
  for (const [template, verbs] of Object.entries(paths)) {
    for (const [verb, operation] of Object.entries(verbs)) {
      if ('101' in operation.responses) continue;
      const method = verb.toUpperCase();
      const drawn = wildRequests(template, operation, things);
      const wilds = fc.sample(drawn, { seed: SEED, numRuns: COUNT });
      const judged = async (wild: Wild): Promise<string | undefined> => {
        const seen = await send(url, agent, method, wild);
        const path = wild.path.split('?')[0] ?? '';
        const failed = seen.status >= 500 && !DECLARED.includes(seen.status);
        const fault = failed
          ? `${seen.status} ${seen.text}`
          : judge.verdict({ ...seen, method, path });
        return fault && `${fault}\n  seed ${SEED}: ${method} ${shown(wild)}`;
      };
      const [faults, beside] = await Promise.all([
        sendAll(wilds, judged),
        send(url, agent, 'GET', good),
      ]);
      assert.is(beside.status, 200, `beside ${method} ${template}`);
      assert.is(faults.length, 0, faults.slice(0, 3).join('\n'));
    }
  }
  over.abort();
  await ending;
});

function shown({ path, headers, body }: Wild): string {
  return `${path} ${JSON.stringify(headers)} ${JSON.stringify(body?.toString('latin1') ?? '')}`;
}

test.run();
