/** Wakes for other cores: those of many commits go together, on the connection for wakes alone. */
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openOnPostgres, urlOf } from '../../../support/engine.ts';
import { until } from '../../../support/poll.ts';
import { hasPostgres } from '../../../support/postgres.ts';
import { openBench, T0 } from '../engines.ts';

const ENGINE = { name: 'postgres', open: openOnPostgres };
const test = suite('core/store/postgres/wakes');
/** In milliseconds: wakes of 20 ms go together, and a timer may end a part of one early. */
const SEND_MIN_MS = 19;
const INVOCATIONS = 200;

/** Another program that listens to the wakes of all cores: the topics of each message. */
async function listening(url: string) {
  const sql = postgres(url, { max: 2, onnotice: () => {} });
  const messages: string[][] = [];
  await sql.listen('tabern_wakes', (payload) => void messages.push(JSON.parse(payload).topics));
  return { messages, [Symbol.asyncDispose]: () => sql.end() };
}

if (hasPostgres()) {
  test('the wakes of many commits are few messages, and none is left out', async () => {
    await using bench = await openBench(ENGINE);
    const projectId = await bench.project('p', INVOCATIONS);
    const fn = await bench.publish(projectId);
    await using other = await listening(await urlOf(bench.dir));
    const { messages } = other;
    const startedAt = performance.now();
    const ids = await Promise.all(
      Array.from({ length: INVOCATIONS }, async () => {
        const { id } = await bench.accept(projectId, fn);
        await bench.store.cancelInvocation({ id, projectId, at: T0 });
        return id;
      }),
    );
    await until(() => {
      const heard = new Set(messages.flat());
      return ids.every((id) => heard.has(`invocation:${id}`));
    });
    const most = (performance.now() - startedAt) / SEND_MIN_MS + 1;
    console.log(`${2 * INVOCATIONS} commits, ${messages.length} messages`);
    assert.ok(messages.length <= most, `${messages.length} messages, at most ${most}`);
  });
}

test.run();
