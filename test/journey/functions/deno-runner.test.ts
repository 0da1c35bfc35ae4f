/** The runner role as a Deno process: it registers, builds, runs a function with Chrome, ends. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { findRuntime } from '../../../runner/functions/runtime.ts';
import { startApart } from '../../faults/apart.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/functions/deno-runner');
const LAUNCHER = fileURLToPath(new URL('../../../gateway/tabern.js', import.meta.url));
/** The arguments in runner/README.md. */
const WORDS = ['run', '--allow-all', '--no-prompt', '--node-modules-dir=manual', LAUNCHER];
const PROJECT = {
  'package.json': '{"type": "module", "dependencies": {"packed": "file:./packed"}}',
  'packed/package.json': '{"name": "packed", "version": "1.0.0", "type": "module"}',
  'packed/index.js': 'export const packed = "installed";',
  'index.ts': `import { packed } from 'packed';
import { defineFn } from 'tabern';
defineFn('where', async ({ session }, { asked }: { asked: string }) => {
  const socket = new WebSocket(session.connectUrl);
  const next = (event: string) =>
    new Promise<{ data: string }>((resolve) => socket.addEventListener(event, resolve));
  await next('open');
  const answer = next('message');
  socket.send('{"id": 1, "method": "Browser.getVersion"}');
  const { result } = JSON.parse((await answer).data);
  socket.close();
  console.log('asked', asked);
  return { asked, packed, engine: process.versions.deno, chrome: /Chrome/.test(result.product) };
});`,
};

journey('a runner under Deno publishes and invokes', async () => {
  const { program, version } = await findRuntime('deno', {});
  const env = { TABERN_SANDBOX: 'none', TABERN_LOG_LEVEL: 'debug' };
  await using service = await startApart(env, { runner: [program, ...WORDS] });
  try {
    const { where = '' } = await publish(service, PROJECT);
    const { id } = await invoke(service, where, { asked: 'this' });
    const { status, results, cause } = await ended(service, id);
    assert.is(status, 'COMPLETED', JSON.stringify(cause));
    assert.equal(results, { asked: 'this', packed: 'installed', engine: version, chrome: true });
    await service.stop();
    const run = join(service.dataDir, 'run');
    assert.equal(existsSync(run) ? readdirSync(run) : [], [], 'its directory is gone');
  } catch (error) {
    console.error(service.logs().slice(-8_000));
    throw error;
  }
});

journey('a runner under Deno refuses to start unless TABERN_SANDBOX is none', async () => {
  await using dir = tempDirectory();
  const { program } = await findRuntime('deno', {});
  const env = { ...process.env, TABERN_DATA: dir.path, TABERN_RUNNER_TOKEN: 'token'.repeat(7) };
  const child = spawn(program, [...WORDS, 'runner'], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const said = child.stderr.setEncoding('utf8').toArray();
  const [code] = await once(child, 'close', { signal: AbortSignal.timeout(60_000) });
  assert.is(code, 78);
  assert.match(
    (await said).join(''),
    /runs under Deno can make no sandbox: set TABERN_SANDBOX=none/,
  );
});

journey.run();
