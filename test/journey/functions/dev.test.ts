/** `tabern init`, then `tabern dev`, as a developer uses them: edit, invoke, fix, Ctrl-C. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import { equal, is, match } from 'uvu/assert';
import { functionIds, shell } from '../../support/clients/journey.ts';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { startGroup } from '../../support/service/group.ts';
import { boot } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/functions/dev');
const BIN = fileURLToPath(new URL('../../../gateway/bin.ts', import.meta.url));
/** For a build and the start of a browser, on a busy machine. */
const PATIENCE_MS = 180_000;

/** Needs no package: sends CDP commands itself. */
const ENTRY = `import { defineFn } from 'tabern';
import { word } from './word.ts';
defineFn('asks', async (ctx, params) => {
  console.log('asked for', params.what);
  const { promise, resolve, reject } = Promise.withResolvers();
  const socket = new WebSocket(ctx.session.connectUrl);
  socket.onopen = () => socket.send('{"id":1,"method":"Browser.getVersion"}');
  socket.onmessage = ({ data }) => resolve(JSON.parse(data).result.product);
  socket.onerror = reject;
  return { word, product: await promise, region: ctx.invocation.region };
});
defineFn('fails', async () => { throw new RangeError('it was asked to'); });
defineFn('paints', async () => {
  throw new Error('\\u001b[31mred\\u001b[39m\\nmore\\u001b]0;x\\u0007');
});
`;

/** The variables that npm and the search for a Chrome need. */
function envOf(home: string): Record<string, string> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(?:npm_|TABERN_)/.test(name));
  return {
    ...(Object.fromEntries(kept) as Record<string, string>),
    XDG_CACHE_HOME: join(home, 'c'),
  };
}

/** The number of the last build, from the names of the bundles. */
function newestBuild(runs: string): number {
  const names = readdirSync(runs).flatMap((name) => readdirSync(join(runs, name)));
  return Math.max(...names.map((name) => Number(/^dev-(\d+)\.mjs$/.exec(name)?.[1] ?? 0)));
}

journey('dev builds after each change, survives failed builds and ends with Ctrl-C', async () => {
  await using dir = tempDirectory();
  const env = envOf(dir.path);
  const project = join(dir.path, 'p');
  await shell([process.execPath, BIN, 'init', 'p'], { cwd: dir.path, env });
  writeFileSync(join(project, 'word.ts'), `export const word: string = 'one';`);
  writeFileSync(join(project, 'index.ts'), ENTRY);
  const port = String(await freePort());
  const command = [process.execPath, BIN, 'dev', 'index.ts', '--port', port];
  await using dev = startGroup(command, { cwd: project, env });
  const { said } = dev;
  await until(() => {
    if (dev.hasEnded()) throw new Error(said());
    return said().includes('listening on');
  }, PATIENCE_MS);
  const post = async (name: string, params = {}) => {
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify({ params }) };
    const answer = await fetch(`http://127.0.0.1:${port}/v1/functions/${name}/invoke`, init);
    return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
  };

  const first = await post('asks', { what: 'a name' });
  is(first.status, 200, JSON.stringify(first.json) + said());
  is(first.json['word'], 'one');
  is(first.json['region'], 'local');
  match(String(first.json['product']), /Chrome/);
  match(said(), /log asked for a name/);

  const failed = await post('fails');
  is(failed.status, 500);
  const { message, type, stackTrace } = failed.json['error'] as Record<string, string[]>;
  equal([message, type], ['it was asked to', 'RangeError']);
  match(String(stackTrace), /index\.ts:1[23]/, 'the stack trace has lines of the source');

  is((await post('paints')).status, 500);
  await until(() => /^ {2}Error: red\n {2}more\ufffd\]0;x\ufffd\n {2} +at /m.test(said()));
  is(said().includes('\u001b'), false, 'no control sequence in a pipe');

  writeFileSync(join(project, 'word.ts'), 'export const word = ;');
  await until(() => said().includes('waiting for a change'), PATIENCE_MS);
  const broken = await post('asks');
  is(broken.status, 503);
  match(JSON.stringify(broken.json), /word\.ts:1/);

  writeFileSync(join(project, 'word.ts'), `export const word = 'two';`);
  await until(async () => (await post('asks', { what: 'x' })).json['word'] === 'two', PATIENCE_MS);

  const timesBuilt = () => said().split('built again').length - 1;
  await until(() => timesBuilt() === 1);
  const runs = join(dir.path, 'c', 'tabern', 'dev', 'run');
  for (const text of ['of no function', 'of none still']) {
    const before = newestBuild(runs);
    writeFileSync(join(project, 'notes.txt'), text);
    await until(() => newestBuild(runs) > before, PATIENCE_MS);
  }
  is(timesBuilt(), 1, 'an unchanged bundle is not printed');

  is(dev.family().length > 2, true, 'a browser is running');
  is(await dev.interrupt(), 0, said());
  equal(readdirSync(runs), []);
  is(existsSync(join(project, '.browserbase')), false, 'no file is written to the project');
});

journey('a project of init is published unchanged, and again without an install', async () => {
  await using dir = tempDirectory();
  await using stack = await boot();
  const env = { ...envOf(dir.path), TABERN_BASE_URL: stack.url, TABERN_API_KEY: stack.apiKey };
  await shell([process.execPath, BIN, 'init', 'p'], { cwd: dir.path, env });
  const inProject = { cwd: join(dir.path, 'p'), env };
  const publish = () => shell([process.execPath, BIN, 'publish', 'index.ts'], inProject);
  const first = await publish();
  is(first.code, 0, first.stdout + first.stderr);
  match(first.stderr, 'no package-lock.json or pnpm-lock.yaml');
  equal(Object.keys(await functionIds(stack)), ['title']);
  // of several runners, each installs once for itself
  let reused = '';
  for (const _ of await stack.pidsOf('runner')) {
    const again = await publish();
    is(again.code, 0, again.stdout + again.stderr);
    reused += again.stderr;
  }
  match(reused, 'dependencies are of an earlier build');
  const params = '{"url": "data:text/html,<title>hej</title>"}';
  const invoked = await shell(
    [process.execPath, BIN, 'invoke', 'title', '--params', params],
    inProject,
  );
  is(invoked.code, 0, invoked.stdout + invoked.stderr);
  match(invoked.stdout, /"title": "hej"/);
});

journey.run();
