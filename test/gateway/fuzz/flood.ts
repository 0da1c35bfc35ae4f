/** Wild requests to every operation that a service describes, so many at once. */
import { Agent, request as httpRequest } from 'node:http';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { KEY } from '../../core/boot.ts';
import { type Description, openJudge } from '../../support/judge/judge.ts';
import { type Operation, type Wild, wildRequests } from './requests.ts';
import type { Service } from './service.ts';

const AT_ONCE = 16;
/** Answers without a search engine, a browser or a runner, of which this test has none. */
const DECLARED: readonly number[] = [501, 502, 503];
const GOOD: Wild = { path: '/v1/projects', headers: {} };

type Answer = { status: number; type: string; text: string };
type Api = {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, { [key: string]: unknown }> };
};
export type Flood = Disposable & {
  /** The violation in the responses of each operation in turn. */
  faults(count: number, seed: number): AsyncGenerator<{ operation: string; faults: string[] }>;
  /** A good request; its status. */
  good(): Promise<number>;
};

export async function openFlood({ url, ids }: Pick<Service, 'url' | 'ids'>): Promise<Flood> {
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE + 1 });
  const described: unknown = await (await fetch(`${url}/openapi.json`)).json();
  const judge = openJudge(described as Description);
  const { paths, components } = described as Api;
  const things = { ids, schemas: components.schemas };

  async function faultOf(method: string, wild: Wild): Promise<string | undefined> {
    const seen = await send(url, agent, method, wild);
    const failed = seen.status >= 500 && !DECLARED.includes(seen.status);
    if (failed) return `${seen.status} ${seen.text}`;
    return judge.verdict({ ...seen, method, path: wild.path.split('?')[0] ?? '' });
  }

  return {
    async *faults(count, seed) {
      for (const [template, verbs] of Object.entries(paths)) {
        for (const [verb, operation] of Object.entries(verbs)) {
          if ('101' in operation.responses) continue;
          const method = verb.toUpperCase();
          const drawn = wildRequests(template, operation, things);
          const wilds = fc.sample(drawn, { seed, numRuns: count });
          const faults = await sendAll(wilds, async (wild) => {
            const fault = await faultOf(method, wild);
            return fault && `${fault}\n  seed ${seed}: ${method} ${shown(wild)}`;
          });
          yield { operation: `${method} ${template}`, faults };
        }
      }
    },
    good: async () => (await send(url, agent, 'GET', GOOD)).status,
    [Symbol.dispose]: () => agent.destroy(),
  };
}

/** Sends the request unchanged: a client library would correct it. */
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

/** Sends all, so many in parallel; returns the violation in each response. */
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

function shown({ path, headers, body }: Wild): string {
  return `${path} ${JSON.stringify(headers)} ${JSON.stringify(body?.toString('latin1') ?? '')}`;
}
