/**
 * A gateway and a runner that cannot reach a core on another machine: one sentence that names the
 * setting, and GET /readyz 503 with it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../../../support/poll.ts';
import { freePort } from '../../../support/port.ts';
import {
  callerVariables,
  coreVariables,
  EXPIRED,
  openPairs,
} from '../../../support/service/apart/pairs.ts';
import { startCore, tabern } from '../../../support/service/command.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('gateway/cli/roles/apart');
const HOST = '127.0.0.2';

/**
 * A core with TLS, and the variables of a gateway elsewhere that it serves. With `isMutual` both
 * the core's settings and the gateway's are those of mTLS.
 */
async function open({ isMutual = true } = {}) {
  await using cleanup = new AsyncDisposableStack();
  const dir = cleanup.use(tempDirectory());
  const pairs = await openPairs(join(dir.path, 'own'));
  const others = await openPairs(join(dir.path, 'others'));
  const where = `${HOST}:${await freePort()}`;
  const data = join(dir.path, 'data');
  const own = await pairs.pair([HOST]);
  cleanup.use(
    await startCore({
      TABERN_DATA: data,
      TABERN_CORE_LISTEN: where,
      ...coreVariables(own, isMutual ? pairs.ca : undefined),
    }),
  );
  const token = (role: string) => readFileSync(join(data, 'keys', `${role}.token`), 'utf8').trim();
  const good = {
    TABERN_DATA: join(dir.path, 'elsewhere'),
    TABERN_CORE: where,
    TABERN_GATEWAY_TOKEN: token('gateway'),
    TABERN_RUNNER_TOKEN: token('runner'),
    TABERN_OPERATOR_TOKEN: token('operator'),
    ...callerVariables(pairs.ca, isMutual ? await pairs.pair(['caller']) : undefined),
  };
  const kept = cleanup.move();
  return { pairs, others, good, dir, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/**
 * The message of GET /readyz of a gateway with these variables, once it has the sentence, and its
 * log. A connection that core drops in the middle of a call says less, until the next one.
 */
async function readiness(
  variables: Record<string, string>,
  sentence: RegExp,
): Promise<[string, string]> {
  const port = await freePort();
  const run = tabern(['gateway'], { ...variables, TABERN_PORT: String(port) });
  const url = `http://127.0.0.1:${port}/readyz`;
  try {
    let last = '';
    await until(async () => {
      if (run.child.exitCode !== null) throw new Error(run.said.err);
      const answer = await fetch(url).catch(() => undefined);
      if (answer === undefined) return false;
      assert.is(answer.status, 503);
      last = ((await answer.json()) as { message: string }).message;
      return sentence.test(last);
    }).catch((error) => assert.match(last, sentence, String(error)));
    const message = last;
    // a core that is served has one fault only, which is not the gateway's to log
    if (!/runner/.test(message)) await until(() => sentence.test(run.said.err));
    return [message, run.said.err];
  } finally {
    run.child.kill('SIGTERM');
    await run.ended;
  }
}

test('a gateway says which setting keeps it from core', async () => {
  await using app = await open();
  const { good, pairs, others } = app;
  await readiness(good, /^Not ready: No runner is registered\.$/);
  const broken: [Record<string, string>, RegExp][] = [
    [callerVariables(others.ca), /certificate that the authorities of TABERN_CORE_CA_FILE did not/],
    [
      callerVariables(pairs.ca, await others.pair(['caller'])),
      /TABERN_CORE_CLIENT_CERT_FILE must be a certificate of the authorities/,
    ],
    [
      callerVariables(pairs.ca, await pairs.pair(['caller'], EXPIRED)),
      /TABERN_CORE_CLIENT_CERT_FILE is a certificate for .*: renew it/,
    ],
    [{ TABERN_GATEWAY_TOKEN: 'x'.repeat(43) }, /core refused the token: set TABERN_GATEWAY_TOKEN/],
  ];
  const found = await Promise.all(
    broken.map(([more, sentence]) => readiness({ ...good, ...more }, sentence)),
  );
  for (const [index, [message, log]] of found.entries()) {
    const [, sentence] = broken[index] ?? [undefined, /never/];
    assert.match(message, sentence);
    assert.match(log, sentence, log);
    assert.not.match(message, /127\.0\.0\.2|\//, 'neither an address nor a path');
  }
});

test('a core without an authority of clients serves a gateway without a certificate', async () => {
  await using app = await open({ isMutual: false });
  const { good, others } = app;
  const isServed = /^Not ready: No runner is registered\.$/;
  await readiness(good, isServed);
  const listed = await tabern(['projects', 'list', '--json'], good).ended;
  assert.is(listed.code, 0, listed.err);
  const refused: [Record<string, string>, RegExp][] = [
    [{ TABERN_CORE_CA_FILE: '' }, /core closed the connection: .*, set TABERN_CORE_CA_FILE/],
    [callerVariables(others.ca), /certificate that the authorities of TABERN_CORE_CA_FILE did not/],
  ];
  const refusals = refused.map(async ([more, sentence]) => {
    const variables = { ...good, ...more };
    const ended = await tabern(['projects', 'list'], variables).ended;
    assert.is(ended.code, 69);
    assert.match(ended.err, sentence);
    assert.not.match(ended.err, /\n {4}at /);
    const [message, log] = await readiness(variables, sentence);
    assert.match(log, sentence, log);
    assert.not.match(message, /127\.0\.0\.2|\//, 'neither an address nor a path');
  });
  await Promise.all(refusals);
});

test('files that cannot be used end a role with a sentence that names them', async () => {
  await using app = await open();
  const { good, pairs } = app;
  const other = await pairs.pair(['caller']);
  const refused: [string, Record<string, string>, RegExp][] = [
    [
      'gateway',
      { TABERN_CORE_CLIENT_KEY_FILE: other.key.path },
      /TABERN_CORE_CLIENT_CERT_FILE and TABERN_CORE_CLIENT_KEY_FILE: .*key values mismatch/,
    ],
    [
      'gateway',
      { TABERN_CORE_CA_FILE: '/none.crt' },
      /TABERN_CORE_CA_FILE: cannot read \/none\.crt/,
    ],
    [
      'gateway',
      { TABERN_CORE_CA_FILE: other.key.path },
      /TABERN_CORE_CA_FILE: .* has no certificate in PEM/,
    ],
    ['gateway', { TABERN_CORE: 'https://core:7447' }, /TABERN_CORE must be host:port, or unix:/],
    [
      'runner',
      {
        TABERN_RUNNER_LISTEN: '10.1.2.3:9000',
        TABERN_CORE_CA_FILE: '',
        TABERN_CORE_CLIENT_CERT_FILE: '',
        TABERN_CORE_CLIENT_KEY_FILE: '',
      },
      /TABERN_RUNNER_LISTEN needs TLS/,
    ],
  ];
  const ended = refused.map(([role, more]) => tabern([role], { ...good, ...more }).ended);
  for (const [index, { code, err }] of (await Promise.all(ended)).entries()) {
    const [role, , sentence] = refused[index] ?? [];
    assert.is(code, 2, `${role}: ${err}`);
    assert.match(err, sentence ?? /never/);
  }
});

test('a command of the operator calls a core on another machine', async () => {
  await using app = await open();
  const listed = await tabern(['projects', 'list', '--json'], app.good).ended;
  assert.is(listed.code, 0, listed.err);
  const wrong = { ...app.good, ...callerVariables(app.others.ca) };
  const refused = await tabern(['projects', 'list'], wrong).ended;
  assert.is(refused.code, 69);
  assert.match(refused.err, /authorities of TABERN_CORE_CA_FILE did not issue/);
});

test.run();
