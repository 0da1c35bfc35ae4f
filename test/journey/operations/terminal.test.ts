/** Functions from a terminal and from a pipe: their errors, their deletion, what takes a while. */
import { suite } from 'uvu';
import { equal, is, match, not, ok } from 'uvu/assert';
import { publish } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { tabern } from '../../support/service/command.ts';
import { onTerminal } from '../../support/service/pty.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { tempDirectory, writeTree } from '../../support/temp.ts';

const journey = suite('journey/operations/terminal');
const ESC = '\u001b';
const LIMIT_MS = 90_000;

const PROJECT = {
  'package.json': '{"name":"shown","version":"1.0.0","private":true,"type":"module"}',
  'index.ts': `import { defineFn } from 'tabern';
defineFn('fails', async () => {
  throw new RangeError('\\u001b[31mred\\u001b[39m\\nsecond line\\u001b]0;a title\\u0007\\u001b[2J');
});
defineFn('logs', async () => {
  console.log('\\u001b[32mgreen\\u001b[39m \\u001b[1A');
  return 1;
});
defineFn('waits', async () => new Promise((resolve) => setTimeout(resolve, 60_000)));
`,
};

const envOf = ({ url, apiKey }: Stack) => ({ TABERN_BASE_URL: url, TABERN_API_KEY: apiKey });

journey('an error of a handler keeps its lines and colours, and nothing else', async () => {
  await using stack = await boot();
  await publish(stack, PROJECT);
  const env = envOf(stack);
  const piped = await tabern(['invoke', 'fails'], env).ended;
  equal([piped.code, piped.out], [1, '']);
  match(piped.err, /^invocation failed: WORKLOAD_ERROR: RangeError: red\nsecond line/m);
  match(piped.err, /^ +at .*index\.ts:3/m);
  not.ok(piped.err.includes(ESC));
  const shown = onTerminal(['invoke', 'fails'], { env });
  is(await shown.ended, 1);
  ok(shown.text().includes(`RangeError: ${ESC}[31mred${ESC}[39m\nsecond line\u{fffd}]0;a title`));
  for (const bad of [`${ESC}]`, `${ESC}[2J`, '\u0007']) not.ok(shown.text().includes(bad));

  const [, id = ''] = /^invocation (\S+)$/m.exec(piped.err) ?? [];
  const got = await tabern(['invocations', 'get', id], env).ended;
  match(got.out, /^cause +WORKLOAD_ERROR$/m);
  match(got.out, /^\nRangeError: red\nsecond line/m);
  not.ok(got.out.includes(ESC));
  const gotShown = onTerminal(['invocations', 'get', id], { env });
  is(await gotShown.ended, 0);
  ok(gotShown.text().includes(`${ESC}[31mred${ESC}[39m\nsecond line`));
  not.ok(gotShown.text().includes(`${ESC}]`));
  const json = await tabern(['invocations', 'get', id, '--json'], env).ended;
  match(JSON.parse(json.out).cause.message, `${ESC}[31mred`);

  const logged = onTerminal(['invoke', 'logs'], { env });
  is(await logged.ended, 0);
  ok(logged.text().includes(`${ESC}[32mgreen${ESC}[39m \u{fffd}[1A`), logged.text());
});

journey('a function is deleted after a yes, and refused while it runs', async () => {
  await using stack = await boot();
  const { waits = '' } = await publish(stack, PROJECT);
  const env = envOf(stack);
  const run = (...argv: string[]) => tabern(argv, env).ended;
  const missing = await run('functions', 'delete', 'wait', '--yes');
  equal([missing.code, missing.out], [1, '']);
  is(missing.err, 'there is no function "wait"; did you mean "waits"?\n');
  const unasked = await run('functions', 'delete', 'waits');
  equal([unasked.code, unasked.out], [2, '']);
  match(unasked.err, /add --yes/);

  const waiting = onTerminal(['invoke', 'waits'], { env });
  await until(() => waiting.text().includes('\r/ running'), LIMIT_MS);
  const [, id = ''] = /^invocation (\S+)$/m.exec(waiting.text()) ?? [];
  const refused = await run('functions', 'delete', 'waits', '--yes');
  is(refused.code, 1);
  match(refused.err, /^409 The function cannot be deleted: 1 invocation is pending or running\. /);
  await run('cancel', id);
  is(await waiting.ended, 1);
  match(waiting.text(), /invocation failed: WORKLOAD_ERROR.*cancelled/);

  for (const [answer, code, says] of [
    ['n\n', 1, /nothing was deleted/],
    ['\u0004', 1, /nothing was deleted/],
    ['y\n', 0, new RegExp(`^${waits}$`, 'm')],
  ] as const) {
    const asked = onTerminal(['functions', 'delete', 'waits'], { env });
    await until(() => asked.text().includes('invocations and logs? [y/N]'), LIMIT_MS);
    asked.type(answer);
    is(await asked.ended, code, asked.text());
    match(asked.text(), says);
  }
  not.match((await run('functions', 'list')).out, waits);
  match((await run('functions', 'list')).out, / logs /);
  match((await run('functions', 'get', waits)).err, /^404 Function not found/);
  match((await run('invoke', waits)).err, /^404 /);
  match((await run('invocations', 'get', id)).err, /^404 /);
  match((await run('functions', 'delete', waits, '--yes')).err, /^404 /);

  await using dir = tempDirectory();
  writeTree(dir.path, PROJECT);
  const published = onTerminal(['publish', 'index.ts'], { env, cwd: dir.path });
  is(await published.ended, 0, published.text());
  match(published.text(), /uploading \d+ B|uploading \d\.\d kB/);
  match(published.text(), /bundled, \d+(?:\.\d)? kB/);
  const [, again] = /^waits\t(\S+)/m.exec(published.text()) ?? [];
  ok(again !== undefined && again !== waits, 'a new function of that name');
  const list = onTerminal(['builds', 'list'], { env });
  is(await list.ended, 0);
  ok(list.text().includes(`${ESC}[32mCOMPLETED`));
  not.ok((await run('builds', 'list')).out.includes(ESC));
});

journey.run();
