/** The order of events on PostgreSQL beside other transactions, and on another server. */
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openOnPostgres, urlOf } from '../../../support/engine.ts';
import { hasPostgres } from '../../../support/postgres.ts';
import { type Bench, openBench, T0 } from '../engines.ts';

const ENGINE = { name: 'postgres', open: openOnPostgres };
const test = suite('core/store/postgres/events');

/** A listener, and a function whose invocations have events. */
async function listening(bench: Bench) {
  const projectId = await bench.project('p');
  const fn = await bench.publish(projectId);
  const first = await bench.store.listen({ projectId, until: Number.MAX_SAFE_INTEGER });
  return { projectId, fn, first };
}

/** A transaction that has written, until disposed. */
async function writing(url: string, statement: string) {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await sql.unsafe(`BEGIN; ${statement}`);
  return { [Symbol.asyncDispose]: () => sql.end() };
}

/** Ids of invocations. */
function acceptedIn(events: readonly { type: string; body: Uint8Array }[]): string[] {
  const accepted = events.filter(({ type }) => type === 'functions.invocations.pending');
  return accepted.map(({ body }) => JSON.parse(Buffer.from(body).toString()).data.id);
}

const WRITE = 'CREATE TABLE other (x integer)';

if (hasPostgres()) {
  test('an event is read while a program of another database writes for hours', async () => {
    await using bench = await openBench(ENGINE);
    const { projectId, fn, first } = await listening(bench);
    const url = (await urlOf(bench.dir)).replace(/\/\w+$/, '/postgres');
    await using _ = await writing(url, WRITE);
    const { id } = await bench.accept(projectId, fn);
    const { events } = await bench.store.eventsAfter({ projectId, after: first, limit: 10 });
    assert.equal(acceptedIn(events), [id]);
  });

  test('an event behind an open transaction of its database is read after that one', async () => {
    await using bench = await openBench(ENGINE);
    const { projectId, fn, first } = await listening(bench);
    const read = () => bench.store.eventsAfter({ projectId, after: first, limit: 10 });
    {
      await using _ = await writing(await urlOf(bench.dir), WRITE);
      await bench.accept(projectId, fn);
      assert.equal(await read(), { events: [], isEarly: true });
    }
    const { events, isEarly } = await read();
    assert.is(acceptedIn(events).length, 1);
    assert.is(isEarly, false);
  });

  test('after a restore to another server new events follow those of the backup', async () => {
    await using bench = await openBench(ENGINE);
    const { projectId, fn } = await listening(bench);
    for (let count = 0; count < 3; count += 1) await bench.accept(projectId, fn);
    const sql = postgres(await urlOf(bench.dir), { max: 1, onnotice: () => {} });
    // as on a server that has run more transactions, with numbers that this one comes to next
    await sql`UPDATE events SET seq = (pg_current_xact_id()::TEXT::BIGINT << 12)
      + 4096 * (1 + (SELECT COUNT(*) FROM events AS older WHERE older.seq < events.seq) * 20)`;
    const numbers = async () => {
      return (await sql`SELECT id FROM events ORDER BY seq`).map((row) => row['id'] as string);
    };
    const before = await numbers();
    const restored = await openOnPostgres(bench.dir);
    const first = await restored.listen({ projectId, until: Number.MAX_SAFE_INTEGER });
    const ids: string[] = [];
    for (let count = 0; count < 25; count += 1) {
      ids.push((await bench.accept(projectId, fn, { at: T0 + 1 })).id);
    }
    const { events } = await restored.eventsAfter({ projectId, after: first, limit: 100 });
    assert.equal(acceptedIn(events), ids);
    assert.equal((await numbers()).slice(0, before.length), before, 'in their order');
    await restored.close();
    await sql.end();
  });
}

test.run();
