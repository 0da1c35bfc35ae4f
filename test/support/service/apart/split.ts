/**
 * The service as separate processes, in place of `tabern serve`, for TABERN_TEST_TOPOLOGY=split:
 * two cores with mTLS behind one address, on the PostgreSQL and the bucket of the settings; two
 * gateways behind TABERN_PORT; three runners with TLS on 127.0.0.3. Each has a data directory of
 * its own, the first core TABERN_DATA. A process that exits is started again, as a supervisor
 * would. SIGTERM ends the runners, whose sessions end as those of a service, then the gateways,
 * then the cores; SIGKILL ends all at once.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openSealer } from '../../../../core/common/sealer.ts';
import { tokenFile } from '../../../../core/common/secret-files.ts';
import { until } from '../../poll.ts';
import { freePort } from '../../port.ts';
import { lendSelfTest } from '../../runner/self-test-record.ts';
import { startFigures } from '../../servers/figures.ts';
import { type Address, accepts, startFront } from '../../servers/front.ts';
import { RUNNER_HOST, saveAddedRunner } from '../added-runner.ts';
import { saveOperator } from '../operator.ts';
import { APART } from '../serve.ts';
import { callerVariables, coreVariables, openPairs, type Pairs } from './pairs.ts';

const LAUNCHER = fileURLToPath(new URL('../../../../gateway/tabern.js', import.meta.url));
const CORE_HOST = '127.0.0.2';
const GATEWAY_HOST = '127.0.0.1';
const TOKENS = ['operator', 'gateway', 'runner'] as const;
/** Of a process that exited. */
const RESTART_MS = 100;

type Variables = Record<string, string>;

const { TABERN_API_KEY: apiKey = '', ...given } = process.env as Variables;
/** Only the cores get the settings of the database and of the bucket. */
const ofCores = variables((name) => /^TABERN_(DATABASE|BLOBS)/.test(name));
const shared = variables((name) => !(name in ofCores));
const data = shared['TABERN_DATA'] ?? '';
const running = new Set<ChildProcess>();
/** Where each process has its metrics, when they are wanted. */
const figures: Address[] = [];
/** Before the gateways, once all roles run. */
let front: Server | undefined;
let isEnding = false;
const wantedFigures = shared['TABERN_METRICS_LISTEN'];

await run();

async function run(): Promise<void> {
  process.on('SIGTERM', () => void end());
  process.on('SIGINT', () => void end());
  const pairs = await openPairs(`${data}-certs`);
  makeSecrets();
  const { address, cores } = await openCores(pairs);
  saveOperator(data, { address, ca: pairs.ca, pair: await pairs.pair(['operator']) });
  saveAddedRunner(data, {
    TABERN_CORE: address,
    TABERN_RUNNER_ID: 'added',
    ...callerVariables(pairs.ca, await pairs.pair(['added'])),
  });
  const gateways = await openGateways(pairs, address);
  await openRunners(pairs, address);
  if (wantedFigures) await startFigures(addressIn(wantedFigures), figures);
  await Promise.all([...cores, ...gateways].map(accepts));
  await Promise.all(gateways.map(answers));
  const port = Number(shared['TABERN_PORT']);
  front = await startFront({ host: GATEWAY_HOST, port }, gateways);
}

/** Waits until the gateway has reached a core. */
async function answers({ host, port }: Address): Promise<void> {
  const headers = { 'x-svc-api-key': apiKey };
  const url = `http://${host}:${port}/v1/sessions?status=RUNNING`;
  await until(async () => (await fetch(url, { headers })).ok);
}

function variables(isWanted: (name: string) => boolean): Variables {
  return Object.fromEntries(Object.entries(given).filter(([name]) => isWanted(name)));
}

/** The master key and the tokens, which the cores share, and a file of the API key. */
function makeSecrets(): void {
  const keys = join(data, 'keys');
  mkdirSync(keys, { recursive: true, mode: 0o700 });
  if (!existsSync(join(keys, 'master.key'))) openSealer(join(keys, 'master.key'), null);
  for (const role of TOKENS) tokenFile(join(keys, `${role}.token`));
}

/** The cores, and the address before them. */
async function openCores(pairs: Pairs): Promise<{ address: string; cores: Address[] }> {
  const keyFile = `${data}-certs/api-key`;
  writeFileSync(keyFile, apiKey, { mode: 0o600 });
  const cores: Address[] = [];
  for (let n = 1; n <= APART.core; n += 1) {
    const place = n === 1 ? { TABERN_DATA: data } : placeOf(`c${n}`);
    if (n > 1) cpSync(join(data, 'keys'), join(place.TABERN_DATA, 'keys'), { recursive: true });
    const address = { host: CORE_HOST, port: await freePort() };
    cores.push(address);
    start('core', {
      ...ofCores,
      ...place,
      ...(await figuresOf()),
      TABERN_CORE_LISTEN: `${address.host}:${address.port}`,
      TABERN_API_KEY_FILE: keyFile,
      ...coreVariables(await pairs.pair([CORE_HOST]), pairs.ca),
    });
  }
  const port = await freePort();
  await startFront({ host: CORE_HOST, port }, cores);
  return { address: `${CORE_HOST}:${port}`, cores };
}

async function openGateways(pairs: Pairs, core: string): Promise<Address[]> {
  const servers: Address[] = [];
  for (let n = 1; n <= APART.gateway; n += 1) {
    const address = { host: GATEWAY_HOST, port: await freePort() };
    servers.push(address);
    start('gateway', {
      ...(await callerOf(pairs, `g${n}`, core)),
      ...tokenOf('gateway'),
      TABERN_HOST: address.host,
      TABERN_PORT: String(address.port),
    });
  }
  return servers;
}

async function openRunners(pairs: Pairs, core: string): Promise<void> {
  for (let n = 1; n <= APART.runner; n += 1) {
    lendSelfTest(placeOf(`r${n}`).TABERN_DATA);
    start('runner', {
      ...(await callerOf(pairs, `r${n}`, core)),
      ...tokenOf('runner'),
      TABERN_RUNNER_ID: `r${n}`,
      TABERN_RUNNER_LISTEN: `${RUNNER_HOST}:${await freePort()}`,
    });
  }
}

async function callerOf(pairs: Pairs, name: string, core: string): Promise<Variables> {
  const own = callerVariables(pairs.ca, await pairs.pair([name]));
  return { TABERN_CORE: core, ...own, ...placeOf(name), ...(await figuresOf()) };
}

/** A data directory of its own. */
function placeOf(name: string): { TABERN_DATA: string } {
  const path = `${data}-${name}`;
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return { TABERN_DATA: path };
}

/** `tabern serve` has the metrics of all roles at one address; apart, each has its own. */
async function figuresOf(): Promise<Variables> {
  if (wantedFigures === undefined) return {};
  const address = { ...addressIn(wantedFigures), port: await freePort() };
  figures.push(address);
  return { TABERN_METRICS_LISTEN: `${address.host}:${address.port}` };
}

function addressIn(text: string): Address {
  const [host = '', port] = text.split(':');
  return { host, port: Number(port) };
}

/** In a file, as an operator gives it: no secret is in an environment. */
function tokenOf(role: 'gateway' | 'runner'): Variables {
  return { [`TABERN_${role.toUpperCase()}_TOKEN_FILE`]: join(data, 'keys', `${role}.token`) };
}

/** Ends with this process, also by SIGKILL. A first start that fails ends all. */
function start(role: string, variables: Variables): void {
  const node = [process.execPath, ...process.execArgv];
  const words = ['--pdeathsig', 'KILL', ...node, LAUNCHER, role];
  const child = spawn('setpriv', words, {
    env: { ...shared, ...variables },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  running.add(child);
  child.once('exit', async (code) => {
    running.delete(child);
    if (isEnding) return;
    if (front === undefined && role !== 'runner') process.exit(code ?? 1);
    await pause(RESTART_MS);
    if (!isEnding) start(role, variables);
  });
}

async function end(): Promise<void> {
  if (isEnding) return;
  isEnding = true;
  for (const role of ['runner', 'gateway', 'core']) {
    if (role === 'gateway') front?.close();
    await ended([...running].filter(({ spawnargs }) => spawnargs.at(-1) === role));
  }
  process.exit(0); // connections of the fronts may be left
}

async function ended(children: readonly ChildProcess[]): Promise<void> {
  const exits = children.map((child) => once(child, 'exit'));
  for (const child of children) child.kill('SIGTERM');
  await Promise.all(exits);
}
