/** Masks of secrets: every form of a value, whole values at a cut, and the cost of many values. */
import { inspect } from 'node:util';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { LineSink } from '../../../runner/host/console.ts';
import { explain } from '../../../runner/host/errors.ts';
import { LINE_MAX_BYTES } from '../../../runner/host/messages.ts';
import { openMask, readSecrets } from '../../../runner/host/secrets.ts';
import { openYard, type Ran } from './bundle.ts';

const test = suite('runner/host/secrets');

const TOKEN = 'tok-51ab"\\\'/é';
const KEY = '-----BEGIN KEY-----\n  MIIEvQIBADANBg\nkqhkiG9w0\nab\n-----END KEY-----\n';
const SECRETS = { TOKEN, KEY, SHORT: 'abc', PIN: '1234' };
const NAMED = Object.entries(SECRETS).map(([secretKey, value]) => ({ secretKey, value }));

const mask = (text: string) => openMask(SECRETS).cut(text, LINE_MAX_BYTES);

/** The lines of a handler that writes these texts. */
function printed(...texts: string[]): string[] {
  const lines: string[] = [];
  const sink = new LineSink(({ message }) => lines.push(message), openMask(SECRETS));
  for (const text of texts) sink.write('stdout', 'log', text);
  sink.close();
  return lines;
}

function jsonOf({ outcome }: Ran): string | undefined {
  return outcome.type === 'result' ? outcome.json : undefined;
}

test('secrets are read by name, and have no other members', () => {
  const secrets = readSecrets('{"A":"1","__proto__":"2","constructor":"3"}');
  const entries = [
    ['A', '1'],
    ['__proto__', '2'],
    ['constructor', '3'],
  ];
  assert.equal(Object.entries(secrets), entries);
  assert.is(readSecrets('{}')['toString'], undefined);
});

test('a value is masked as it is, as JSON and as an inspected object', () => {
  assert.is(mask(`x ${TOKEN}${TOKEN} y ${TOKEN}`), 'x *** y ***');
  assert.is(mask(JSON.stringify({ a: TOKEN })), '{"a":"***"}');
  assert.is(mask(inspect({ a: TOKEN })), '{ a: `***` }');
  assert.is(mask(JSON.stringify({ a: KEY })), '{"a":"***"}');
  assert.is(mask(inspect({ a: "it's 1234" })), '{ a: "it\'s ***" }');
});

test('each line of a value is masked, and its line breaks are kept', () => {
  assert.equal(printed(`${KEY}end\n`), ['***', '  ***', '***', 'ab', '***', 'end']);
});

test('a value in several writes is one value', () => {
  const pieces = TOKEN.split('').map((character) => character);
  assert.equal(printed('a ', ...pieces, ' b\n', TOKEN), ['a *** b', '***']);
});

test('values below four characters are not masked; other text is unchanged', () => {
  assert.is(mask('abc 123 tok-51a'), 'abc 123 tok-51a');
  assert.is(openMask({}).cut(TOKEN, LINE_MAX_BYTES), TOKEN);
});

test('overlapping values leave nothing of either', () => {
  const both = openMask({ A: 'abcdef', B: 'defghi', C: 'abcdefgh' });
  assert.is(both.cut('-abcdefghi-', 100), '-***-');
  assert.is(both.cut('-abcdefdefghi-', 100), '-***-');
});

test('a value at the cut of a line, of a write or of an error leaves no part', () => {
  for (const before of [LINE_MAX_BYTES - 3, LINE_MAX_BYTES - 1, LINE_MAX_BYTES + 3]) {
    const line = 'x'.repeat(before) + TOKEN + TOKEN;
    for (const lines of [
      printed(line),
      printed(line.slice(0, before + 2), line.slice(before + 2)),
    ]) {
      assert.is(lines.length, 1);
      assert.not.ok(lines.join().includes('tok'), `after ${before} characters`);
    }
  }
  // masks are shorter than values: text behind the searched part must not move into the line
  const many = `${TOKEN}-`.repeat(LINE_MAX_BYTES);
  const [line = ''] = printed(many);
  assert.not.ok(/tok|51ab/.test(line));
  const error = explain(
    new Error(`x${'y'.repeat(16 * 1024 - 3)}${TOKEN}`),
    '/f',
    openMask(SECRETS),
  );
  assert.not.ok(/tok/.test(error.message + error.stack));
});

test('an error is masked in its name, message and stack, also when it is no error', () => {
  const error = Object.assign(new Error(`no ${TOKEN}\nof ${KEY}`), { name: `E1234` });
  const shown = explain(error, '/f', openMask(SECRETS));
  assert.is(shown.name, 'E***');
  assert.ok(shown.message.startsWith('no ***\nof ***'));
  assert.not.ok(/tok|BEGIN/.test(JSON.stringify(shown)));
  assert.is(
    explain({ a: TOKEN }, '/f', openMask(SECRETS)).message,
    'the handler threw { a: `***` }',
  );
});

test('a handler reads its secrets, and its lines and its error show none', async () => {
  await using yard = await openYard();
  const secrets = NAMED;
  const read = await yard.run(
    `console.log(ctx.secrets.TOKEN, ctx); console.error(ctx.secrets.KEY);
     process.stdout.write(JSON.stringify(ctx.secrets) + '\\n');
     return { ...ctx.secrets, env: Object.values(process.env), proto: ctx.secrets.toString };`,
    { secrets },
  );
  const { env, ...result } = JSON.parse(String(jsonOf(read)));
  assert.equal(result, SECRETS, 'results are left alone');
  assert.not.ok(JSON.stringify(env).includes('tok-51ab'));
  const lines = read.lines.map(({ message }) => message).join('\n');
  assert.not.ok(/51ab|MIIEv|1234/.test(lines), lines);
  assert.ok(lines.startsWith('*** {'));

  const thrown = await yard.run("throw new Error('bad ' + ctx.secrets.TOKEN);", { secrets });
  assert.ok(thrown.outcome.type === 'failure');
  assert.is(thrown.outcome.message, 'bad ***');
  assert.not.ok(/51ab/.test(thrown.outcome.stack));
  const late = await yard.run(
    'setTimeout(() => { throw new Error(ctx.secrets.KEY) }, 1); await new Promise(() => {});',
    { secrets },
  );
  assert.ok(late.outcome.type === 'failure' && !/MIIE/.test(JSON.stringify(late.outcome)));
});

test('the next run on the thread has its own secrets, or none', async () => {
  await using yard = await openYard();
  const bundle = await yard.bundle(`const handler = (ctx) => {
    console.log('value of the first'); return Object.keys(ctx.secrets); };
    export const definitions = () => new Map([['f', { handler }]]);
    export const manifests = () => [];`);
  const secrets = [{ secretKey: 'FIRST', value: 'value of the first' }];
  const first = await yard.run('', { bundle, secrets });
  await yard.idle();
  const second = await yard.run('', { bundle });
  assert.equal([first, second].map(jsonOf), ['["FIRST"]', '[]']);
  assert.equal(
    [first, second].map(({ lines }) => lines[0]?.message),
    ['***', 'value of the first'],
  );
});

test('what a host with secrets wrote past its console is in no log of the runner', async () => {
  const logged: string[] = [];
  const write = (line: string): void => void logged.push(line);
  await using yard = await openYard('auto', { log: pino({ level: 'debug' }, { write }) });
  const said = async (secrets: typeof NAMED): Promise<string> => {
    const body = `const { Session } = await import('node:inspector');
      const { writeSync } = await import('node:fs');
      writeSync(2, 'raw ' + (ctx.secrets.TOKEN ?? 'output') + '\\n');
      const session = new Session();
      session.connectToMainThread();
      session.post('Runtime.evaluate', { expression: 'process.reallyExit(3)' });
      await new Promise(() => {});`;
    const projectId = `project-${secrets.length}`;
    const { outcome } = await yard.run(body, { projectId, secrets });
    assert.ok(outcome.type === 'failure' && /was lost/.test(outcome.message));
    const lost = logged.splice(0).find((line) => line.includes('a function host was lost'));
    return must(lost, 'the line of the loss');
  };
  assert.match(await said([]), /raw output/);
  assert.not.match(await said(NAMED), /raw|tok-51/);
});

test('the largest secrets of a function reach its handler', async () => {
  await using yard = await openYard();
  // each byte has six in the JSON of the frame
  const value = '\u0001'.repeat(65_488);
  const secrets = Array.from({ length: 4 }, (_, at) => ({ secretKey: `S${at}`, value }));
  const ran = await yard.run(
    'return Object.values(ctx.secrets).reduce((sum, { length }) => sum + length, 0);',
    { secrets },
  );
  assert.is(jsonOf(ran), String(4 * 65_488));
});

test.run();
