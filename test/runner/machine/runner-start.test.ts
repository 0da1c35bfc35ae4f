/** The start of a runner that `tabern serve`, or a supervisor with a channel, has spawned. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PREPARED_BY } from '../../../proto/common/runner-ipc.ts';

const test = suite('runner/machine/runner-start');
const MODULE = new URL('../../../runner/machine/runner-start.ts', import.meta.url).href;
const SCRIPT = `
  const { untilStarted } = await import(${JSON.stringify(MODULE)});
  process.send('loaded');
  const { TABERN_CORE, TABERN_RUNNER_ID, ${PREPARED_BY}: by } = await untilStarted(process.env);
  process.send({ core: TABERN_CORE, id: TABERN_RUNNER_ID, by }, () => process.disconnect());`;

/** A process that has loaded its modules. */
async function loaded(parent: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', SCRIPT], {
    env: { PATH: '/bin', TABERN_CORE: 'own', [PREPARED_BY]: String(parent) },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  assert.equal(await once(child, 'message'), ['loaded', undefined]);
  return child;
}

test('a prepared runner works when its parent says so, with the core of the message', async () => {
  const child = await loaded(process.pid);
  child.send({ type: 'start', core: 'given' });
  const [said] = await once(child, 'message');
  assert.equal(said, { core: 'given' });
  const named = await loaded(process.pid);
  named.send({ type: 'start', core: 'given', runnerId: 'one' });
  assert.equal((await once(named, 'message'))[0], { core: 'given', id: 'one' });
});

test('a runner with the channel of another program works at once', async () => {
  const child = await loaded(process.pid + 1);
  const [said] = await once(child, 'message');
  assert.equal(said, { core: 'own' });
});

test('a prepared runner ends with its parent, and when it is to end', async () => {
  for (const end of [(one: ChildProcess) => one.disconnect(), sendEnd]) {
    const child = await loaded(process.pid);
    end(child);
    assert.equal(await once(child, 'exit'), [0, null]);
  }
});

test('messages that arrive with the start are received after it', async () => {
  const script = `
    const { untilStarted } = await import(${JSON.stringify(MODULE)});
    await new Promise((resolve) => process.stdin.once('data', resolve));
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate); // reads the channel
    await untilStarted(process.env);
    process.on('message', (message) => process.send(message, () => process.disconnect()));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: { PATH: '/bin', [PREPARED_BY]: String(process.pid) },
    stdio: ['pipe', 'inherit', 'inherit', 'ipc'],
  });
  child.send({ type: 'start' });
  // both are sent before the child listens
  child.send({ type: 'drain' }, () => child.stdin?.end('sent'));
  const [said] = await once(child, 'message');
  assert.equal(said, { type: 'drain' });
});

test('a runner whose parent ended while it was loaded does not work', async () => {
  const script = `
    while (process.connected) await new Promise(setImmediate);
    const { untilStarted } = await import(${JSON.stringify(MODULE)});
    await untilStarted(process.env);
    console.log('works');`;
  const parent = `
    import { spawn } from 'node:child_process';
    const env = { PATH: '/bin', ${PREPARED_BY}: String(process.pid) };
    const stdio = ['ignore', 'inherit', 'inherit', 'ipc'];
    const code = ${JSON.stringify(script)};
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], { env, stdio });
    child.once('spawn', () => process.exit(0));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', parent], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  await once(child, 'close'); // both have ended: they share stdout
  assert.is(text, '');
});

function sendEnd(child: ChildProcess): void {
  child.send({ type: 'end' });
}

test.run();
