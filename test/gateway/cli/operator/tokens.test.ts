/** `tabern tokens`: a token is changed while its old value is in use. */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startCore } from '../../../../core/main.ts';
import { openLog } from '../../../../proto/common/log.ts';
import { configOn } from '../../../core/boot.ts';
import { faultOf } from '../../../support/fault.ts';
import { tabern } from '../../../support/service/command.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('gateway/cli/operator/tokens');
const log = openLog({ role: 'core', level: 'silent' });

test('core accepts both tokens after rotate, and the next one alone after finish', async () => {
  await using dir = tempDirectory();
  const run = (...words: string[]) => tabern(['tokens', ...words], { TABERN_DATA: dir.path }).ended;
  const path = join(dir.path, 'keys/gateway.token');
  const read = (file: string) => readFileSync(file, 'utf8').trim();
  /** Starts core and tries each token. */
  const accepted = async (...tokens: string[]) => {
    await using core = await startCore(configOn(dir.path), Object.assign(log, { warn }));
    const tried = tokens.map(async (token) => {
      const metadata = { authorization: `Bearer ${token}` };
      const answer = core.clients.health.checkHealth({}, { metadata });
      return answer.then(
        () => true,
        (error) => error.reason,
      );
    });
    return await Promise.all(tried);
  };
  const warned: string[] = [];
  const warn = (...said: unknown[]) => void warned.push(JSON.stringify(said));
  await accepted();
  const old = read(path);
  assert.is((await run('rotate', 'gateway')).code, 0);
  const next = read(`${path}.next`);
  assert.is.not(next, old);
  assert.is(statSync(`${path}.next`).mode & 0o777, 0o600);
  const again = await run('rotate', 'gateway');
  assert.is(again.code, 1);
  assert.match(again.err, /gateway\.token\.next exists/);
  assert.is(read(`${path}.next`), next);
  assert.equal(warned, []);
  assert.equal(await accepted(old, next), [true, true]);
  assert.match(warned.join(), /gateway\.token\.next","age":"less than a day"\},"a second token is/);
  assert.not.ok(warned.join().includes(next));
  const finished = await run('finish', 'gateway');
  assert.equal([finished.code, finished.out], [0, `${path}\n`]);
  assert.not.ok((finished.out + finished.err).includes(next));
  assert.equal(await accepted(old, next), ['API_KEY_INVALID', true]);
  assert.match((await run('finish', 'gateway')).err, /no .*gateway\.token\.next/);
  assert.is((await run('rotate', 'browser')).code, 2);
});

test('tokens may be settings, with a next one each; then no file is made', async () => {
  await using dir = tempDirectory();
  const [token, next] = ['g'.repeat(32), 'n'.repeat(32)];
  const env = { TABERN_GATEWAY_TOKEN: token, TABERN_GATEWAY_TOKEN_NEXT: next };
  await using core = await startCore(configOn(dir.path, env), log);
  const call = (text: string) =>
    core.clients.health.checkHealth({}, { metadata: { authorization: `Bearer ${text}` } });
  assert.ok((await call(token)).checks.length > 0);
  assert.ok((await call(next)).checks.length > 0);
  assert.is((await faultOf(call('x'.repeat(32)))).reason, 'API_KEY_INVALID');
  assert.throws(() => readFileSync(join(dir.path, 'keys/gateway.token')));
  const { err } = await tabern(['tokens', 'rotate', 'gateway'], { TABERN_DATA: dir.path }).ended;
  assert.match(err, /a token in TABERN_GATEWAY_TOKEN is changed by TABERN_GATEWAY_TOKEN_NEXT/);
  assert.throws(() => configOn(dir.path, { TABERN_RUNNER_TOKEN: 'short' }), /at least 32/);
});

test.run();
