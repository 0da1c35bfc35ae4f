/**
 * The container image, run with the options of compose.yaml: a page in a real Chrome, a function,
 * the health check, the end by SIGTERM, and the same data in the next container. Needs root for the
 * base of the image, and a machine that starts containers; else it prints what is missing.
 */
import { chromium } from 'playwright-core';
import { suite } from 'uvu';
import { equal, is, match } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { functionIds, shell } from '../../support/clients/journey.ts';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { startSite } from '../../support/servers/site.ts';
import {
  BASE,
  builtImage,
  composeService,
  IMAGE,
  type Image,
} from '../../support/service/image.ts';
import { boot } from '../../support/service/stack.ts';

const MUST_RUN = process.getuid?.() === 0 || process.env['CI'] === 'true';
const NAME = 'tabern-test';
const UID = '10001';
/** In milliseconds, of a container's first start on a loaded machine. */
const START_MS = 180_000;
/** Set by boot(), beside TABERN_API_KEY, which compose.yaml passes. */
const OF_TEST = ['TABERN_PORT', 'TABERN_BROWSER_ALLOW_CIDRS', 'TABERN_WEBHOOK_ALLOW_CIDRS'];

const image = suite('journey/install/image');

/** The options of compose.yaml for `podman run`, in the network of this machine. */
function options(): string[] {
  const service = composeService();
  const flags = (flag: string, values: readonly string[]) => values.flatMap((one) => [flag, one]);
  const { interval, timeout, start_period: startPeriod, retries } = service.healthcheck;
  return [
    ...flags('--cap-drop', service.cap_drop),
    ...flags('--security-opt', service.security_opt),
    ...flags('--tmpfs', service.tmpfs),
    ...flags('--volume', service.volumes),
    ...flags('--env', [...service.environment, 'TABERN_HOST=127.0.0.1', ...OF_TEST]),
    `--read-only=${service.read_only}`,
    `--shm-size=${service.shm_size}`,
    `--stop-timeout=${Number.parseInt(service.stop_grace_period, 10)}`,
    ...[`--health-interval=${interval}`, `--health-timeout=${timeout}`],
    ...[`--health-start-period=${startPeriod}`, `--health-retries=${retries}`],
  ];
}

/** The title of the page, in a session's Chrome. */
async function titleOf(connectUrl: string, url: string): Promise<string> {
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'the page of the session');
  await page.goto(url);
  const title = await page.title();
  await browser.close();
  return title;
}

/** The user, its capabilities, the first process and the root directory of a running container. */
async function expectConfined({ podman }: Image): Promise<void> {
  is(await podman('exec', NAME, 'id', '-u'), UID);
  const status = await podman('exec', NAME, 'cat', '/proc/1/status');
  match(status, /^Name:\ttini$/m);
  match(status, /^CapEff:\t0+$/m);
  match(status, /^CapBnd:\t0+$/m);
  match(status, /^NoNewPrivs:\t1$/m);
  const written = await podman('exec', NAME, 'sh', '-c', 'echo >/x || echo read-only');
  is(written, 'read-only');
  // with a picture of text, by the fonts of the image
  match(await podman('exec', NAME, 'tabern', 'doctor'), /^ok +chrome +HeadlessChrome/m);
}

/** The health check of a container in which no service runs. */
async function expectUnhealthy({ podman, words }: Image): Promise<void> {
  await podman('run', '--replace', '-d', '--name', NAME, '--entrypoint', 'sleep', IMAGE, '600');
  const check = words('healthcheck', 'run', NAME);
  is((await shell(check, { cwd: '/', env: {} })).code, 1);
}

/** The container of compose.yaml in a network of its own, as an operator starts it. */
async function startedByCompose({ compose, podman }: Image): Promise<void> {
  const port = await freePort();
  await compose(port, 'up', '-d');
  const url = `http://127.0.0.1:${port}`;
  const logs = () => podman('logs', 'tabern-test_tabern_1');
  // printed when the service is ready
  const key = await until(async () => /API key +(\S+)/.exec(await logs())?.[1], START_MS);
  const init = { method: 'POST', headers: { 'x-svc-api-key': key } };
  const answer = await fetch(`${url}/v1/sessions`, init);
  is(answer.status, 201, await logs());
  const { connectUrl } = (await answer.json()) as { connectUrl: string };
  is(await titleOf(connectUrl, 'data:text/html,<title>composed</title>'), 'composed');
  await compose(port, 'down');
}

/** Why this machine starts no container, not even of a plain Debian. */
async function containerProblem({ words }: Image): Promise<string | undefined> {
  const command = words('run', '--rm', '--network', 'host', BASE, 'true');
  const { code, stderr } = await shell(command, { cwd: '/', env: {} });
  return code === 0 ? undefined : stderr.trim();
}

async function journey(): Promise<void> {
  await using site = await startSite();
  await using built = await builtImage();
  const problem = await containerProblem(built);
  if (problem !== undefined) return console.log(`not run: no container starts here: ${problem}`);
  const run = ['run', '--replace', '--name', NAME, '--network', 'host', ...options(), IMAGE];
  await using stack = await boot({ command: built.words(...run) });

  const first = await stack.call<{ connectUrl: string }>('/v1/sessions', { method: 'POST' });
  is(await titleOf(first.connectUrl, `${site.url}/rooms`), 'Rooms');
  match(stack.logs(), /"msg":"sandbox is (?:bwrap|landlock)"/);
  await expectConfined(built);
  await built.podman('healthcheck', 'run', NAME);
  match(await built.podman('exec', NAME, 'tabern', 'version'), /^\d+\.\d+\.\d+$/);

  const { trivial } = await publish(stack);
  const { id } = await invoke(stack, must(trivial, 'trivial'), { a: 1 });
  const { status, results } = await ended(stack, id);
  equal([status, results], ['COMPLETED', { params: { a: 1 }, invocation: id }], stack.logs());

  const session = await stack.call<{ id: string }>('/v1/sessions', { method: 'POST' });
  await stack.kill('SIGTERM');
  is(await built.podman('inspect', '--format', '{{.State.ExitCode}}', NAME), '0', stack.logs());
  await stack.restart();
  equal(await functionIds(stack), { trivial });
  const found = await stack.call<{ status: string }>(`/v1/sessions/${session.id}`);
  is(found.status === 'RUNNING', false, 'its browser ended with the container');
  await stack.kill('SIGTERM');
  await expectUnhealthy(built);
  await startedByCompose(built);
}

image(
  'the image runs sessions and functions, keeps its data, and starts by compose.yaml',
  async () => {
    if (MUST_RUN) return await journey();
    const { stdout } = await shell(['id', '-un'], { cwd: '/', env: {} });
    console.log(`not run by ${stdout.trim()}: root makes the base of the image`);
  },
);

image.run();
