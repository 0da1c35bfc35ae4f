/**
 * Measures the service as a second tenant, in a thread, so that the test's own work delays no
 * measurement. Ten times a second: a CDP round trip in its session, a GET of the session and, as
 * the control, one byte to an echo process, which measures the machine itself. Time in which the
 * service's main thread was runnable without a processor does not count: other processes used the
 * machine.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { WebSocket } from 'ws';
import { must } from '../../../proto/common/must.ts';

export type SecondTenantData = {
  url: string;
  apiKey: string;
  id: string;
  connectUrl: string;
  /** The processes whose main threads serve the session's clients and the requests. */
  runnerPid: number;
  servicePid: number;
};

export type Clocks = {
  /** The longest since the previous report, in milliseconds. */
  tripMs: number;
  getMs: number;
  controlMs: number;
  /** Of the slowest clock, from the start. */
  rounds: number;
};

const PERIOD_MS = 100;
const test = must(parentPort, 'the test');
const { url, apiKey, id, connectUrl, ...pids } = workerData as SecondTenantData;

/** A round trip in progress counts with its age. */
class Clock {
  maxMs = 0;
  rounds = 0;
  #since: { at: number; waitedMs: number } | undefined;
  readonly #pid: number | undefined;

  constructor(pid?: number) {
    this.#pid = pid;
  }

  async run(act: () => Promise<unknown>): Promise<never> {
    for (;;) {
      this.#since = { at: performance.now(), waitedMs: waitedMs(this.#pid) };
      await act();
      this.note();
      this.#since = undefined;
      this.rounds += 1;
      await pause(PERIOD_MS);
    }
  }

  note(): void {
    if (this.#since === undefined) return;
    const { at, waitedMs: before } = this.#since;
    const took = performance.now() - at - (waitedMs(this.#pid) - before);
    this.maxMs = Math.max(this.maxMs, took);
  }

  take(): number {
    this.note();
    const max = this.maxMs;
    this.maxMs = 0;
    return Math.round(max);
  }
}

const echo = spawn(process.execPath, ['-e', 'process.stdin.pipe(process.stdout)'], {
  stdio: ['pipe', 'pipe', 'ignore'],
});
process.once('exit', () => echo.kill('SIGKILL'));
const client = new WebSocket(connectUrl);
await once(client, 'open');
client.once('close', (code) => fail(new Error(`its connection was closed with ${code}`)));

const [trip, get] = [new Clock(pids.runnerPid), new Clock(pids.servicePid)];
const control = new Clock();
const clocks = [
  trip.run(async () => {
    client.send('{"id":1,"method":"Browser.getVersion"}');
    await once(client, 'message');
  }),
  get.run(async () => {
    const answer = await fetch(`${url}/v1/sessions/${id}`, {
      headers: { 'x-svc-api-key': apiKey },
    });
    const { status } = (await answer.json()) as { status?: string };
    if (status !== 'RUNNING') throw new Error(`its session is ${status} (${answer.status})`);
  }),
  control.run(async () => {
    echo.stdin.write('x');
    await once(echo.stdout, 'data');
  }),
];
Promise.all(clocks).catch(fail);
test.on('message', () => {
  const times = { tripMs: trip.take(), getMs: get.take(), controlMs: control.take() };
  const rounds = Math.min(...[trip, get, control].map((clock) => clock.rounds));
  test.postMessage({ ...times, rounds } satisfies Clocks);
});
test.postMessage('ready');

/** How long the main thread of a process has waited for a processor so far. */
function waitedMs(pid: number | undefined): number {
  if (pid === undefined) return 0;
  const [, waitedNs] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ');
  return Number(waitedNs) / 1e6;
}

function fail(error: Error): never {
  echo.kill('SIGKILL');
  throw error;
}
