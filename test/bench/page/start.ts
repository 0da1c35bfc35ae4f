/**
 * `node test/bench/page/start.ts [rounds]`: how long `tabern serve` takes on stored data until it
 * is ready and until its first session has answered, each beside a Node process that does the
 * least: a server, and a launch of the same Chrome. Read the ratios.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { must } from '../../../proto/common/must.ts';
import { SPARES } from '../../support/service/serve.ts';
import { boot } from '../../support/service/stack.ts';
import { firstAnswer, sessionsOf } from '../support/providers.ts';
import { type Effort, type Row, rowOf, showRow } from '../support/rows.ts';
import { settled } from '../support/settled.ts';

const ROUNDS = Number(process.argv[2] ?? 5);
const STARTS = 3;
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const CHROME = process.env['TABERN_CHROME'] ?? '/usr/lib/chromium/chromium';
/** Each prints a line when it is ready, and ends with its input. */
const SERVER = `
import { createServer } from 'node:http';
createServer((request, response) => response.end()).listen(0, '127.0.0.1', () => console.log('1'));
process.stdin.on('end', () => process.exit()).resume();`;
const LAUNCH = `
import puppeteer from 'puppeteer-core';
const browser = await puppeteer.launch({
  executablePath: ${JSON.stringify(CHROME)}, args: ['--no-sandbox', '--no-first-run'] });
console.log(await browser.version());
process.stdin.on('end', () => browser.close().then(() => process.exit())).resume();`;

if (import.meta.main) {
  for (const row of await starts({ rounds: ROUNDS, samplesMax: STARTS })) showRow(row);
}

/** Of one service, which has run before: its data and its compiled code are there. */
export async function starts(effort: Effort): Promise<Row[]> {
  await using stack = await boot({ env: SPARES, isDirect: true });
  await settled(stack.pid); // its key pairs are made
  const sessions = sessionsOf(stack);
  await firstAnswer(sessions);
  const [ready, firstSession] = [rowOf('ready'), rowOf('firstSession')];
  const count = Math.min(STARTS, effort.samplesMax);
  await Promise.all([plainStart(SERVER), plainStart(LAUNCH)]); // reads their files
  for (let round = 0; round < effort.rounds; round += 1) {
    const took = { ready: [] as number[], firstSession: [] as number[] };
    const plain = { server: [] as number[], launch: [] as number[] };
    for (let start = 0; start < count; start += 1) {
      await stack.kill('SIGTERM');
      plain.server.push(await plainStart(SERVER));
      plain.launch.push(await plainStart(LAUNCH));
      await stack.restart();
      took.ready.push(stack.readyMs);
      took.firstSession.push(stack.readyMs + (await firstAnswer(sessions)));
      await settled(stack.pid);
    }
    ready.rounds.push({ took: took.ready, plain: plain.server });
    firstSession.rounds.push({ took: took.firstSession, plain: plain.launch });
  }
  return [ready, firstSession];
}

/** Until the script has printed its line. It has ended then. */
async function plainStart(script: string): Promise<number> {
  const startedAt = performance.now();
  const child: ChildProcess = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  await Promise.race([once(must(child.stdout, 'stdout'), 'data'), failing(ended)]);
  const took = performance.now() - startedAt;
  child.stdin?.end();
  await ended;
  return took;
}

async function failing(ended: Promise<unknown[]>): Promise<never> {
  const [code] = await ended;
  throw new Error(`the plain process ended before it was ready, with ${code}`);
}
