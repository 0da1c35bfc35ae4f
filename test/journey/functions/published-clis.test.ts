/**
 * The published CLIs, unmodified, as a new user runs them: init, dev, publish, invoke. The
 * function is their starter project; only the page that it reads is replaced. The service is named
 * in the project's .env.
 */
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import { is, match, not } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ended } from '../../support/clients/functions.ts';
import { functionIds, shell } from '../../support/clients/journey.ts';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { type Group, startGroup } from '../../support/service/group.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';
import { sized } from '../../support/whole.ts';

const journey = suite('journey/functions/published-clis');
const BIN = fileURLToPath(new URL('../../../node_modules/.bin', import.meta.url));
/** The three install many of the same packages; each has a home of its own. */
const NPM_CACHE = fileURLToPath(new URL('../../../node_modules/.cache/npm', import.meta.url));

/** The CLIs start programs through tsx, which is slow on a busy machine. */
const PATIENCE_MS = 180_000;
/** The element that the starter projects look for on THEIRS, a page on the Internet. */
const LINK = '<span class=titleline><a href=%23>The inn</a></span>';
const PAGE = `data:text/html,<p class=athing>${LINK}</p>`;
const THEIRS = 'https://news.ycombinator.com';

type Tool = {
  /** The package and its version; undefined for a dependency of these tests. */
  from?: string;
  bin: string;
  /** The arguments before init, dev, publish and invoke. */
  group: readonly string[];
  init: readonly string[];
};
const FIRST: Tool = { bin: 'bb', group: [], init: ['-p', 'npm'] };
/** Each installs a hundred packages of its own. */
const OTHERS: readonly Tool[] = [
  {
    from: '@browserbasehq/cli@0.5.7',
    bin: 'bb',
    group: ['functions'],
    init: ['--package-manager', 'npm'],
  },
  { from: 'browse@0.9.3', bin: 'browse', group: ['functions'], init: [] }, // pnpm
];

/** Variables that a run of npm adds, except those for the registry; and those of tabern. */
const OF_A_RUN =
  /^(?:npm_(?!config_(?:registry|userconfig|globalconfig|cafile)$)|TABERN_|NODE_ENV$)/;

/**
 * The starter projects install the newest packages. A fixed date keeps the tests independent of
 * later releases. npm accepts a date, pnpm an age in minutes.
 */
const DAY_MS = Date.parse('2026-11-20T00:00:00Z');
const ageMinutes = () => Math.max(0, Math.floor((Date.now() - DAY_MS) / 60_000));

/** Without telemetry, update checks and writes to the home directory. */
function quiet(home: string): Record<string, string> {
  const given = Object.entries(process.env).filter(([name]) => !OF_A_RUN.test(name));
  return {
    npm_config_userconfig: join(process.env['HOME'] ?? '/', '.npmrc'),
    ...(Object.fromEntries(given) as Record<string, string>),
    PATH: `${BIN}:${process.env['PATH']}`,
    HOME: home,
    npm_config_cache: NPM_CACHE,
    npm_config_update_notifier: 'false',
    npm_config_prefer_offline: 'true', // the date is fixed, and so is what is in the cache
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_before: new Date(DAY_MS).toISOString(),
    npm_config_minimum_release_age: String(ageMinutes()),
    DO_NOT_TRACK: '1',
    BB_DISABLE_UPDATE_CHECK: '1',
    BROWSERBASE_FUNCTIONS_DEV_STARTUP_TIMEOUT_MS: String(PATIENCE_MS),
  };
}

async function toolIn(dir: string, { from, bin }: Tool, env: Record<string, string>) {
  if (from === undefined) return join(BIN, bin);
  mkdirSync(join(dir, 'tool'));
  const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefix', join(dir, 'tool')];
  const made = await shell(['npm', 'install', ...flags, from], { cwd: dir, env });
  is(made.code, 0, made.stderr);
  return join(dir, 'tool', 'node_modules', '.bin', bin);
}

/** Edits the new project: the URL of the service, and the page to read. */
function edit(project: string, stack: Stack): void {
  const given = readFileSync(join(project, '.env'), 'utf8');
  const own = given
    .replace(/^(BROWSERBASE_API_KEY=).*/m, `$1${stack.apiKey}`)
    .replace(/^(BROWSERBASE_PROJECT_ID=).*/m, `$1${stack.projectId}`);
  not.match(own, /your_/);
  writeFileSync(join(project, '.env'), own);
  const where = `BROWSERBASE_BASE_URL=${stack.url}\nBROWSERBASE_API_BASE_URL=${stack.url}\n`;
  appendFileSync(join(project, '.env'), `\n${where}`);
  const entry = join(project, 'index.ts');
  const code = readFileSync(entry, 'utf8');
  match(code, THEIRS);
  writeFileSync(entry, code.replace(THEIRS, PAGE));
}

async function runHere(dev: Group, port: string): Promise<void> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
  const answer = await until(async () => {
    const given = await fetch(
      `http://127.0.0.1:${port}/v1/functions/my-function/invoke`,
      init,
    ).catch(() => null);
    return given !== null && given.status !== 503 && given.status !== 404 && given;
  }, PATIENCE_MS);
  const text = await answer.text();
  is(answer.status, 200, text + dev.said());
  match(text, 'The inn');
}

/** Invokes without waiting, then asks for the status. sdk-functions ignores the flag. */
async function invokeWithoutWaiting(
  command: readonly string[],
  id: string,
  { stack, where }: { stack: Stack; where: Parameters<typeof shell>[1] },
) {
  const begun = await shell([...command, 'invoke', id, '--no-wait'], where);
  is(begun.code, 0, begun.stdout + begun.stderr);
  const invocation = JSON.parse(begun.stdout) as { id: string; status: string };
  is(invocation.status, 'PENDING');
  await ended(stack, invocation.id, PATIENCE_MS); // each start of the command costs a second
  const asked = await shell([...command, 'invoke', '--check-status', invocation.id], where);
  is(asked.code, 0, asked.stdout + asked.stderr);
  is((JSON.parse(asked.stdout) as { status: string }).status, 'COMPLETED');
}

for (const tool of [FIRST, ...sized([], OTHERS)]) {
  journey(`${tool.from ?? 'sdk-functions'}: init, dev, publish, invoke`, async () => {
    await using dir = tempDirectory();
    await using stack = await boot();
    const env = quiet(dir.path);
    const command = [await toolIn(dir.path, tool, env), ...tool.group];

    const made = await shell([...command, 'init', 'first', ...tool.init], { cwd: dir.path, env });
    is(made.code, 0, made.stdout + made.stderr);
    const project = join(dir.path, 'first');
    edit(project, stack);
    const inProject = { cwd: project, env };

    {
      const port = String(await freePort());
      await using dev = startGroup([...command, 'dev', 'index.ts', '--port', port], inProject);
      await runHere(dev, port);
    }
    type Session = { status: string };
    const isReleased = async () =>
      (await stack.call<Session[]>('/v1/sessions')).every(({ status }) => status === 'COMPLETED');
    await until(isReleased);

    const published = await shell([...command, 'publish', 'index.ts'], inProject);
    is(published.code, 0, published.stdout + published.stderr + stack.logs());
    const id = must((await functionIds(stack))['my-function'], 'my-function');
    match(published.stdout, id);

    const invoked = await shell([...command, 'invoke', id], inProject);
    is(invoked.code, 0, invoked.stdout + invoked.stderr);
    match(invoked.stdout, 'The inn');

    if (tool.from !== undefined)
      await invokeWithoutWaiting(command, id, { stack, where: inProject });
    const nobody = await shell([...command, 'invoke', crypto.randomUUID()], inProject);
    is(nobody.code, 1);
    match(nobody.stdout + nobody.stderr, /[Ff]unction/);
  });
}

journey.run();
