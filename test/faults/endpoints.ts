/**
 * Compares the requests that endpoints received with the deliveries in the database, for runs in
 * which processes are killed. The third endpoint fails at times, the fourth cuts connections.
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
/** In milliseconds: deliveries that are due later are not awaited. */
const SOON_MS = 30_000;
const TYPES = ['pending', 'running', 'completed', 'failed'].map(
  (name) => `functions.invocations.${name}`,
);

export type Endpoints = AsyncDisposable & {
  /** PEM file with the CAs of all endpoints. */
  webhookCa: string;
  /** Creates a webhook of the project for each endpoint. */
  register(stack: Pick<Stack, 'call'>): Promise<void>;
  /**
   * Describes the requests. Throws when a delivered event did not arrive, or arrived with different
   * bytes.
   */
  judged(dataDir: string): string;
};

/** Starts the endpoints. */
export async function startEndpoints(): Promise<Endpoints> {
  await using opened = new AsyncDisposableStack();
  const starting = Array.from({ length: ENDPOINTS }, () => startReceiver());
  const receivers = await Promise.all(starting);
  for (const receiver of receivers) opened.use(receiver);
  const answered = answering(receivers);
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
      const isMissing = ({ endpoint, id }: Delivered) => !answered.has(`${endpoint} ${id}`);
      const missing = deliveredBy(dataDir).filter(isMissing);
      assert.equal(missing, [], 'delivered, and its endpoint knows nothing of it');
      return summary(receivers, answered);
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

type Delivered = { endpoint: string; id: string };

/** Deliveries that are in flight, or due soon. */
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

/** The count of 2xx responses for each `endpoint id`. */
type Answered = Map<string, number>;

/** The third endpoint fails at times, the fourth cuts connections. */
function answering(receivers: readonly Receiver[]): Answered {
  const answered: Answered = new Map();
  const shares = [0, 0, SHARE_FAILED, SHARE_CUT];
  for (const [index, receiver] of receivers.entries()) {
    receiver.otherwise(({ path, headers }) => {
      if (Math.random() < (shares[index] ?? 0)) {
        return index === 2 ? 500 : (response) => void response.destroy();
      }
      const name = `${receiver.url}${path} ${headers['webhook-id']}`;
      answered.set(name, (answered.get(name) ?? 0) + 1);
      return 204;
    });
  }
  return answered;
}

/** Describes the requests. Throws when an event was repeated with different bytes. */
function summary(receivers: readonly Receiver[], answered: Answered): string {
  const requests = receivers.flatMap((receiver) => receiver.requests);
  const bodies = new Map<string, Buffer>();
  for (const { headers, body } of requests) {
    const id = String(headers['webhook-id']);
    const first = bodies.get(id) ?? body;
    assert.ok(body.equals(first), `${id} came with other bytes`);
    bodies.set(id, first);
  }
  const twice = [...answered.values()].reduce((sum, times) => sum + times - 1, 0);
  const sent = `${requests.length} requests, ${twice} duplicates`;
  return `${bodies.size} events, ${answered.size} delivered, ${sent}`;
}
