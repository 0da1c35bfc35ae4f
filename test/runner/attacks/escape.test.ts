/**
 * Attacks of a published project, from its handler and through its Chrome, as a hostile tenant
 * would make them. Every attempt must print `no`; a positive control shows that it could succeed.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ended, type Invocation, invoke, publish } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { familyOf, type Process, signalAll } from '../../support/service/processes.ts';
import { SPARES } from '../../support/service/serve.ts';
import { boot, type Stack } from '../../support/service/stack.ts';

const attacks = suite('runner/attacks/escape');
const PROJECT = join(import.meta.dirname, '../../support/projects/attacks');
const FILES = Object.fromEntries(
  ['index.ts', 'browser.ts'].map((name) => [name, readFileSync(join(PROJECT, name), 'utf8')]),
);

/** A service of this machine that no tenant may reach; returns the requested paths. */
async function openMachine() {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(String(request.url));
    response.setHeader('access-control-allow-origin', '*').end('of the machine');
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return {
    asked,
    port: (server.address() as AddressInfo).port,
    [Symbol.dispose]: () => void server.close(),
  };
}

/** Each silent refusal takes this long; permitted requests may take longer. */
const SILENCE_MS = 2_500;
const PATIENCE_MS = 12_000;

type Scene = { stack: Stack; functions: Record<string, string>; params: object };

async function run<T>({ stack, functions, params }: Scene, name: string): Promise<T> {
  const { id } = await invoke(stack, functions[name] ?? '', params);
  const { status, cause, results } = await ended(stack, id);
  assert.is(status, 'COMPLETED', JSON.stringify(cause));
  return results as T;
}

function expectNo(found: Record<string, unknown>): void {
  const got = Object.entries(found).filter(([, said]) => !isNo(String(said)));
  assert.equal(Object.fromEntries(got), {});
}

/** Refused by the machine, by our proxy, by the broker, or by the command policy. */
function isNo(said: string): boolean {
  return /^(no: |"no: |HTTP\/1\.1 (400|401|403|502) )/.test(said);
}

type Files = {
  read: Record<string, unknown>;
  write: Record<string, unknown>;
  pids: string[];
  status: string;
  fds: string[];
  env: string[];
};

attacks('a handler and its pages reach nothing of the machine', async () => {
  using machine = await openMachine();
  await using stack = await boot({ env: { TABERN_BROWSER_ALLOW_CIDRS: '' } });
  const functions = await publish(stack, FILES);
  const pids = [stack.pid, await stack.runnerPid(), process.pid];
  const { dataDir } = stack;
  const params = { port: machine.port, dataDir, pids, patienceMs: SILENCE_MS };
  const scene = { stack, functions, params };

  const files = await run<Files>(scene, 'files');
  expectNo(files.read);
  expectNo(files.write);
  assert.equal(files.pids, ['1']);
  assert.equal(
    files.fds.filter((fd) => !/^\d+ pipe:/.test(fd)),
    [],
  );
  assert.match(files.status, /NoNewPrivs:\t1/);
  assert.match(files.status, /CapEff:\t0{16}\n/);
  assert.not.match(files.env.join(), /TABERN|TOKEN|KEY|PATH/);
  expectNo(await run(scene, 'network'));
  expectNo(await run(scene, 'processes'));
  expectNo(await run(scene, 'browser'));
  assert.equal(machine.asked, []);
});

attacks('opened addresses are reached: the attempts above could have succeeded', async () => {
  using machine = await openMachine();
  await using stack = await boot({ env: { TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.1/32' } });
  const functions = await publish(stack, FILES);
  const { dataDir } = stack;
  const params = { port: machine.port, dataDir, pids: [], patienceMs: PATIENCE_MS };
  const scene = { stack, functions, params };
  const network = await run<Record<string, string>>(scene, 'network');
  assert.match(network['GET 127.0.0.1'] ?? '', 'of the machine');
  assert.match(network['GET 0x7f.1'] ?? '', 'of the machine');
  assert.is(network['fetch'], 'of the machine');
  const browser = await run<Record<string, string>>(scene, 'browser');
  assert.match(browser['page: fetch the machine'] ?? '', 'of the machine');
  assert.match(browser['page: a worker of the machine'] ?? '', 'of the machine');
  assert.ok(machine.asked.includes('/worker'));
});

attacks('a browser or a host lost during a run is reported with its reason', async () => {
  await using stack = await boot({ env: SPARES });
  const functions = await publish(stack, FILES);
  const runner = await stack.runnerPid();
  const scene = { stack, functions, params: { port: 0, dataDir: '', pids: [], patienceMs: 0 } };
  for (const [victim, code, message] of [
    [isChrome, 'INTERNAL_ERROR', /the browser was lost/],
    [isHost, 'WORKLOAD_ERROR', /the function's process was lost/],
  ] as const) {
    const { id } = await invoke(stack, functions['wait'] ?? '', scene.params);
    await waiting(stack, id);
    // spares and the host in use look alike: all of them are killed
    signalAll(familyOf(runner).filter(victim), 'SIGKILL');
    const { cause } = await ended(stack, id);
    assert.is(cause?.code, code);
    assert.match(String(cause?.message), message);
  }
  expectNo(await run(scene, 'processes')); // and the next one finds all it needs
});

function isChrome({ command }: Process): boolean {
  return (
    /^\S*(chrom|headless[-_]shell)\S* /.test(command) && command.includes('--remote-debugging')
  );
}

function isHost({ command }: Process): boolean {
  return /^\/bin\/node .*host\/main\.ts/.test(command);
}

/** Waits until the handler has its browser; throws when the invocation ends before. */
async function waiting(stack: Stack, id: string): Promise<void> {
  await until(async () => {
    const lines = await stack.call<{ message: string }[]>(`/v1/functions/invocations/${id}/logs`);
    if (JSON.stringify(lines).includes('waiting')) return true;
    const { endedAt, cause } = await stack.call<Invocation>(`/v1/functions/invocations/${id}`);
    assert.is(endedAt, undefined, JSON.stringify(cause));
    return false;
  });
}

attacks.run();
