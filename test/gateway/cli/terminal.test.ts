/** Colours and names of a command line, on a terminal and in a pipe. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startCore, tabern } from '../../support/service/command.ts';
import { onTerminal } from '../../support/service/pty.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('gateway/cli/terminal');
const ESC = '\u001b';

async function seen(argv: string[], env: Record<string, string> = {}) {
  const run = onTerminal(argv, { env });
  return { code: await run.ended, text: run.text() };
}

test('a table has a bold head on a terminal, and none with NO_COLOR or TERM=dumb', async () => {
  const shown = await seen(['config']);
  assert.is(shown.code, 0);
  assert.ok(shown.text.includes(`${ESC}[1mSETTING`), shown.text);
  for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) {
    const { code, text } = await seen(['config'], env);
    assert.equal([code, text.includes(ESC)], [0, false], JSON.stringify(env));
    assert.match(text, /^SETTING +VALUE +FROM$/m);
  }
});

test('in a pipe there are no colours, except with FORCE_COLOR', async () => {
  const plain = await tabern(['config']).ended;
  assert.not.ok(plain.out.includes(ESC));
  const forced = await tabern(['config'], { FORCE_COLOR: '1' }).ended;
  assert.ok(forced.out.includes(`${ESC}[1mSETTING`));
  const json = await tabern(['config', '--json'], { FORCE_COLOR: '1' }).ended;
  assert.not.ok(json.out.includes(ESC), 'JSON is for programs');
});

test('an error is red on a terminal and plain in a pipe', async () => {
  const argv = ['serve', '--port', 'http'];
  const shown = await seen(argv);
  assert.is(shown.code, 2);
  assert.ok(shown.text.includes(`${ESC}[31mtabern:${ESC}[39m --port must be`), shown.text);
  const piped = await tabern(argv).ended;
  assert.match(piped.err, /^tabern: --port must be/);
});

test('backup and restore have a bar on a terminal, and plain lines in a pipe', async () => {
  await using dir = tempDirectory();
  const env = { TABERN_DATA: join(dir.path, 'data') };
  {
    await using _ = await startCore(env);
  }
  const file = join(dir.path, 'b.tar');
  const backup = await seen(['backup', file], env);
  assert.is(backup.code, 0, backup.text);
  assert.match(backup.text, /\rbacked up \[={30}\] 100 % \d+ kB of \d+ kB *\n/);
  const restore = await seen(['restore', file, '--data', join(dir.path, 'copy')]);
  assert.is(restore.code, 0, restore.text);
  assert.match(restore.text, /\rread \[={30}\] 100 % /);
  const again = await tabern(['backup', file, '--force'], env).ended;
  assert.is(again.code, 0, again.err);
  assert.not.match(again.err, /[\r[]/);
  assert.match(again.err, /^backed up \d+ kB of \d+ kB$/m);
});

test('a deletion asks only where the question and the answer are on a terminal', async () => {
  await using dir = tempDirectory();
  const stderr = join(dir.path, 'err');
  const env = { TABERN_API_KEY: 'k', TABERN_BASE_URL: 'http://127.0.0.1:9' };
  const argv = ['functions', 'delete', 'title'];
  assert.is(await onTerminal(argv, { env, stderr }).ended, 2);
  assert.match(readFileSync(stderr, 'utf8'), /no terminal to ask on: add --yes/);
  const both = await seen(argv, env);
  assert.is(both.code, 1);
  assert.match(both.text, /cannot reach http/);
});

test('an unknown command, subcommand or flag is answered with the nearest', async () => {
  for (const [argv, says] of [
    [['publsh', 'index.ts'], /unknown command 'publsh'\n\(Did you mean publish\?\)/],
    [['functions', 'lst'], /unknown command 'lst'\n\(Did you mean list\?\)/],
    [['functions', 'list', '--jsno'], /unknown option '--jsno'\n\(Did you mean --json\?\)/],
  ] as const) {
    const { code, out, err } = await tabern(argv).ended;
    assert.equal([code, out], [2, ''], argv.join(' '));
    assert.match(err, says);
  }
});

test.run();
