/** `tabern upgrade` of a service with TLS and PostgreSQL: a client over wss goes on typing. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { until } from '../../../support/poll.ts';
import { hasPostgres, startPostgres } from '../../../support/postgres.ts';
import { openPairs } from '../../../support/service/apart/pairs.ts';
import { isRunning } from '../../../support/service/processes.ts';
import { boot, type Stack } from '../../../support/service/stack.ts';
import { tempDirectory } from '../../../support/temp.ts';
import { copyProgram } from './program-copy.ts';
import {
  read,
  release,
  type Session,
  startTypist,
  UPGRADE_LIMIT_MS,
  upgradeTo,
} from './upgrading.ts';

const journey = suite('journey/operations/upgrade/postgres-tls');
/** Of all upgrades of a run, in milliseconds: seconds (proto/spec/rest.md). Ours. */
const REFUSED_MAX_MS = 10_000;
const PAUSE_MS = 50;

/** Reads a session again and again. `refused`: what came instead of an answer, and how long. */
function startReader(stack: Stack, id: string) {
  const refused: string[] = [];
  let refusedMs = 0;
  let answers = 0;
  let isOver = false;
  const reading = (async () => {
    while (!isOver) {
      const startedAt = performance.now();
      const answer = await stack.fetch(`/v1/sessions/${id}`).catch((error: Error) => error);
      if (answer instanceof Error || !answer.ok) {
        refused.push(answer instanceof Error ? String(answer.cause) : String(answer.status));
        refusedMs += performance.now() - startedAt + PAUSE_MS;
      } else answers += 1;
      if (!(answer instanceof Error)) await answer.body?.cancel();
      await pause(PAUSE_MS);
    }
  })();
  return {
    answers: () => answers,
    refused,
    refusedMs: () => refusedMs,
    async [Symbol.asyncDispose]() {
      isOver = true;
      await reading;
    },
  };
}

if (hasPostgres()) {
  journey('upgrades keep a session whose client is connected over TLS', async () => {
    await using dir = tempDirectory('tabern-pairs-');
    const pairs = await openPairs(join(dir.path, 'pairs'));
    const { cert, key } = await pairs.pair(['127.0.0.1']);
    setDefaultCACertificates([...getCACertificates(), readFileSync(pairs.ca.path, 'utf8')]);
    await using cluster = await startPostgres();
    await using program = copyProgram();
    await using stack = await boot({
      isDirect: true,
      env: {
        TABERN_TLS_CERT_FILE: cert.path,
        TABERN_TLS_KEY_FILE: key.path,
        TABERN_DATABASE_URL: await cluster.createDatabase(),
      },
    });
    match(stack.url, /^https:/);
    await using typist = await startTypist(stack);
    await using reader = startReader(stack, typist.id);
    const runner = await stack.runnerPid();
    for (const version of ['9.0.1', '9.0.2']) {
      const [keys, answers] = [typist.typed().length, reader.answers()];
      await upgradeTo(stack, program, version);
      await until(() => typist.typed().length > keys && reader.answers() > answers);
      ok(isRunning(runner), 'it keeps the first session');
      const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json: {} });
      match(connectUrl, /^wss:/);
      await release(stack, id);
    }
    await reader[Symbol.asyncDispose]();
    const refusedMs = Math.round(reader.refusedMs());
    console.log({ refusedMs, refused: reader.refused });
    ok(refusedMs < REFUSED_MAX_MS, `refused for ${refusedMs} ms`);
    is((await read(stack, typist.id)).status, 'RUNNING');
    await typist.stop();
    await until(() => !isRunning(runner), UPGRADE_LIMIT_MS);
    equal(stack.leftovers(), []);
  });
}

journey.run();
