/**
 * What endpoints were told, beside what the database says of it: for runs in which processes are
 * killed. The third endpoint fails now and then, the fourth cuts connections.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import * as assert from 'uvu/assert';
import { type Receiver, startReceiver } from '../support/servers/receiver.ts';
import type { Stack } from '../support/service/stack.ts';
import { tempDirectory } from '../support/temp.ts';

const ENDPOINTS = 4;
const SHARE_FAILED = 0.1;
const SHARE_CUT = 0.02;
/** In milliseconds: what is due later than this is not waited for. */
const SOON_MS = 30_000;
const TYPES = ['pending', 'running', 'completed', 'failed'].map(
  (name) => `functions.invocations.${name}`,
);

export type Endpoints = AsyncDisposable & {
  /** PEM file with the CAs of all of them. */
  webhookCa: string;
  /** Makes each a webhook of the project. */
  register(stack: Pick<Stack, 'call'>): Promise<void>;
  /** Says what came; throws when one was said to know what it does not, or got other bytes. */
  judged(dataDir: string): string;
};

/** Starts them. */
export async function startEndpoints(): Promise<Endpoints> {
  await using opened = new AsyncDisposableStack();
  const starting = Array.from({ length: ENDPOINTS }, () => startReceiver());
  const receivers = await Promise.all(starting);
  for (const receiver of receivers) opened.use(receiver);
  const told = answering(receivers);
  const dir = opened.use(tempDirectory());
  const webhookCa = join(dir.path, 'ca.pem');
  writeFileSync(webhookCa, receivers.map(({ caPath }) => readFileSync(caPath)).join('\n'));
  const parts = opened.move();
  return {
    webhookCa,
    async register(stack) {
      for (const { url } of receivers) {
        const json = { endpoint: `${url}/hook`, eventTypes: TYPES };
        await stack.call('/v1/webhooks', { json });
      }
    },
    judged(dataDir) {
      const isMissing = ({ endpoint, id }: Delivered) => !told.has(`${endpoint} ${id}`);
      const missing = deliveredBy(dataDir).filter(isMissing);
      assert.equal(missing, [], 'delivered, and its endpoint knows nothing of it');
      return summary(receivers, told);
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

type Delivered = { endpoint: string; id: string };

/** Deliveries that are under way, or due soon. */
export function waiting(dataDir: string): number {
  return read(dataDir, (db) =>
    db
      .prepare<[number], number>(`
        SELECT COUNT(*) FROM deliveries
        WHERE state = 'in_flight' OR (state = 'pending' AND due < ?)`)
      .pluck()
      .get(Date.now() + SOON_MS),
  );
}

function deliveredBy(dataDir: string): Delivered[] {
  return read(dataDir, (db) =>
    db
      .prepare<[], Delivered>(`
        SELECT endpoint, event_id AS id
        FROM deliveries JOIN webhooks ON webhooks.id = deliveries.webhook_id
        WHERE state = 'delivered'`)
      .all(),
  );
}

function read<T>(dataDir: string, look: (db: Database.Database) => T): NonNullable<T> {
  const db = new Database(join(dataDir, 'tabern.db'), { readonly: true });
  try {
    const found = look(db);
    if (found === undefined || found === null) throw new Error('a count has no row');
    return found;
  } finally {
    db.close();
  }
}

/** How often each `endpoint id` was answered 2xx. */
type Told = Map<string, number>;

/** The third fails now and then, the fourth cuts connections; both as hooks do. */
function answering(receivers: readonly Receiver[]): Told {
  const told: Told = new Map();
  const shares = [0, 0, SHARE_FAILED, SHARE_CUT];
  for (const [index, receiver] of receivers.entries()) {
    receiver.otherwise(({ path, headers }) => {
      if (Math.random() < (shares[index] ?? 0)) {
        return index === 2 ? 500 : (response) => void response.destroy();
      }
      const name = `${receiver.url}${path} ${headers['webhook-id']}`;
      told.set(name, (told.get(name) ?? 0) + 1);
      return 204;
    });
  }
  return told;
}

/** Says what came; throws when an event came again with other bytes. */
function summary(receivers: readonly Receiver[], told: Told): string {
  const requests = receivers.flatMap((receiver) => receiver.requests);
  const bodies = new Map<string, Buffer>();
  for (const { headers, body } of requests) {
    const id = String(headers['webhook-id']);
    const first = bodies.get(id) ?? body;
    assert.ok(body.equals(first), `${id} came with other bytes`);
    bodies.set(id, first);
  }
  const twice = [...told.values()].reduce((sum, times) => sum + times - 1, 0);
  const sent = `${requests.length} requests, ${twice} duplicates`;
  return `${bodies.size} events, ${told.size} delivered, ${sent}`;
}
