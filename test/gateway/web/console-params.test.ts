/** The form of a function's params, and the differences of two runs. */
import { suite } from 'uvu';
import { equal, is, ok } from 'uvu/assert';
import { callTexts, commandsOf } from '../../../gateway/web/console/pages/functions/calls.ts';
import { differencesOf } from '../../../gateway/web/console/pages/functions/model/difference.ts';
import {
  type Field,
  fieldsOf,
  paramsOf,
  parsedParams,
  problemOf,
  textsOf,
} from '../../../gateway/web/console/pages/functions/model/schema-form.ts';
import { barsOf } from '../../../gateway/web/console/pages/runs/bars.ts';
import { must } from '../../../proto/common/must.ts';

const form = suite('gateway/web/console-params');

const BASE = 'https://tabern.example';
const SCHEMA = {
  type: 'object',
  properties: {
    word: { type: 'string', title: 'Word', description: 'what to say' },
    times: { type: 'integer', default: 1 },
    isLoud: { type: 'boolean' },
    colour: { enum: ['red', 5, null] },
    tags: { type: 'array', items: { type: 'string' } },
    any: {},
    either: { anyOf: [{ type: 'string' }, { type: 'null' }] },
  },
  required: ['word', 'times', 'either'],
};
const fields = must(fieldsOf(SCHEMA), 'fields');

form('each property has a field of its type, and JSON where no field fits', () => {
  equal(
    fields.map(({ key, kind, isRequired }) => [key, kind, isRequired]),
    [
      ['word', 'text', true],
      ['times', 'number', false],
      ['isLoud', 'boolean', false],
      ['colour', 'choice', false],
      ['tags', 'json', false],
      ['any', 'json', false],
      ['either', 'json', true],
    ],
  );
  equal([fields[0]?.label, fields[0]?.hint], ['Word (word)', 'what to say']);
  is(fields[1]?.hint, 'default: 1');
  equal(fields[3]?.choices, ['"red"', '5', 'null']);
});

form('a schema that a form cannot show whole has none', () => {
  const many = Object.fromEntries(Array.from({ length: 61 }, (_, n) => [`p${n}`, {}]));
  const properties = { a: { type: 'string' } };
  const schemas = [
    ...[undefined, null, true, 5, [], {}, { type: 'object' }, { type: 'string' }],
    ...[
      { type: 'object', properties: {} },
      { type: 'object', properties: many },
    ],
    { type: 'object', properties, anyOf: [] },
    { $ref: '#/$defs/a', type: 'object', properties },
    { type: 'object', properties: 'x' },
  ];
  for (const schema of schemas) is(fieldsOf(schema), undefined, JSON.stringify(schema));
  ok(fieldsOf({ type: 'object', properties: { a: null, __proto__: { b: 5 } } }));
});

form('texts become values; an empty text leaves its member out', () => {
  const texts = { word: ' a ', times: '3', isLoud: 'false', colour: 'null', tags: '["x"]' };
  const params = { word: ' a ', times: 3, isLoud: false, colour: null, tags: ['x'] };
  equal(paramsOf(fields, { ...texts, any: '  ' }), { params });
  equal(textsOf(fields, params), { ...texts, tags: '[\n  "x"\n]' });
});

form('a text that is no number is sent as it is, and wrong JSON is named at its field', () => {
  equal(paramsOf(fields, { times: 'three' }), { params: { times: 'three' } });
  equal(textsOf(fields, { times: 'three' }), { times: 'three' });
  equal(paramsOf(fields, { tags: '[' }), {
    problem: { key: 'tags', text: 'This is not valid JSON.' },
  });
});

form('params that the fields cannot show keep their JSON', () => {
  for (const params of [{ other: 1 }, { word: 5 }, { word: '' }, { colour: 'blue' }]) {
    is(textsOf(fields, params), undefined, JSON.stringify(params));
  }
});

form('the name of a property is a name, whatever it is', () => {
  const properties = JSON.parse('{"__proto__":{"type":"string"},"key":{"type":"string"}}');
  const odd = must(fieldsOf({ type: 'object', properties }), 'fields');
  const texts = JSON.parse('{"__proto__":"x","key":"y"}');
  const read = paramsOf(odd, Object.assign(Object.create(null), { key: 'y' }));
  equal(read, { params: { key: 'y' } });
  const both = paramsOf(odd, texts);
  ok('params' in both && Object.hasOwn(both.params, '__proto__'));
});

form('JSON text is params when it is an object', () => {
  equal(parsedParams(' '), { params: {} });
  equal(parsedParams('{"a":1}'), { params: { a: 1 } });
  for (const text of ['[]', '5', 'null', '{']) ok('problem' in parsedParams(text), text);
});

const NAMED: [message: string, key: string | undefined][] = [
  ['`params/times` must be integer.', 'times'],
  ['`params/tags/0` must be string.', 'tags'],
  ["`params` must have required property 'word'.", 'word'],
  ["`params/either/x` must have required property 'word'.", 'either'],
  ['`params/unknown` must be string.', undefined],
  ['`params` must NOT have additional properties.', undefined],
  ['The service is not reachable', undefined],
];
for (const [message, key] of NAMED) {
  form(`the field of a refusal is found: ${message}`, () => {
    equal(problemOf(message, fields), { key, text: message });
  });
}

form('a pointer of JSON is a name again', () => {
  const odd: Field[] = must(fieldsOf({ type: 'object', properties: { 'a/b~c': {} } }), 'fields');
  is(problemOf('`params/a~1b~0c/1` must be string.', odd).key, 'a/b~c');
});

form('differences are listed by path, with what is added and removed', () => {
  const before = { a: 1, same: { x: [1, 2] }, list: [1, { b: 2 }], gone: true, 'odd key': 'x' };
  const after = { a: '1', same: { x: [1, 2] }, list: [1, { b: 3 }, 4], new: {}, 'odd key': 'y' };
  const { rows, isCut } = differencesOf(before, after);
  equal(
    rows.map(({ path, before: one, after: other }) => `${path}: ${one} -> ${other}`),
    [
      'a: 1 -> "1"',
      'list[1].b: 2 -> 3',
      'list[2]: undefined -> 4',
      'gone: true -> undefined',
      '["odd key"]: "x" -> "y"',
      'new: undefined -> {…} 0 members',
    ],
  );
  is(isCut, false);
  equal(differencesOf(before, structuredClone(before)).rows, []);
  equal(differencesOf([1], { 0: 1 }).rows, [
    { path: '(all)', before: '[…] 1 item', after: '{…} 1 member' },
  ]);
  equal(differencesOf(undefined, null).rows, [{ path: '(all)', before: undefined, after: 'null' }]);
});

form('large and deep values are compared in part', () => {
  const list = (add: number) => Array.from({ length: 300_000 }, (_, n) => n + add);
  const many = differencesOf(list(0), list(1));
  equal([many.rows.length, many.isCut], [200, true]);
  const deep = (end: unknown) => {
    let value = end;
    for (let level = 0; level < 250_000; level += 1) value = [value];
    return value;
  };
  const found = differencesOf(deep(1), deep(2));
  equal([found.rows, found.isCut], [[], true]);
  const { rows } = differencesOf('x'.repeat(10_000_000), 'y');
  ok((rows[0]?.before?.length ?? 0) < 300);
});

form('commands are words of a shell, with the address of the service', () => {
  const { curl, cli, script } = commandsOf({
    baseUrl: BASE,
    id: 'f',
    name: "it's",
    json: `{"a":"it's $x"}`,
  });
  ok(curl.startsWith('curl -X POST https://tabern.example/v1/functions/f/invoke'));
  ok(curl.endsWith(`-d '{"params": {"a":"it'\\''s $x"}}'`), curl);
  is(cli, `tabern invoke 'it'\\''s' --params '{"a":"it'\\''s $x"}'`);
  ok(script.includes(`body: JSON.stringify({ params: {"a":"it's $x"} })`), script);
});

form('an example has the params of the newest run, else those that are required', () => {
  const at = '2026-11-24T00:00:00Z';
  const invoked = { id: 'f', name: 'f', createdAt: at, updatedAt: at };
  const cli = (more: object) => callTexts(BASE, { ...invoked, ...more }).cli;
  is(cli({}), `tabern invoke f --params '{}'`);
  is(cli({ lastParamsJson: '{"n":1}' }), `tabern invoke f --params '{"n":1}'`);
  is(cli({ lastParamsJson: `{"n":"${'x'.repeat(3_000)}"}` }), `tabern invoke f --params '{}'`);
  const paramsSchemaJson = JSON.stringify(SCHEMA);
  is(cli({ paramsSchemaJson }), `tabern invoke f --params '{"word":"…","either":null}'`);
});

form('the bars of a run count from its acceptance', () => {
  const at = (ms: number) => new Date(1_000_000 + ms).toISOString();
  const run = { createdAt: at(0), startedAt: at(100), status: 'RUNNING' as const };
  const texts = (...given: Parameters<typeof barsOf>) =>
    barsOf(...given).map(({ name, state, from, to }) => `${name} ${state} ${from}-${to}`);
  const waiting = { ...run, status: 'PENDING' as const };
  equal(texts(waiting, [], 1_000_700), ['waited for a runner waiting 0-700']);
  equal(texts(run, [], 1_000_700), ['waited for a runner waiting 0-100', 'runs running 100-700']);
  const failed = { ...run, status: 'FAILED' as const, endedAt: at(900) };
  equal(texts(failed, [], 0)[1], 'ran failed 100-900');
  const steps = [
    { name: 'browser', startMs: 5, endMs: 50, failed: false },
    { name: 'handler', startMs: 60, endMs: 700, failed: true },
  ];
  const returned = steps.map((step) => ({ ...step, failed: false }));
  equal(texts(failed, returned, 0).at(-1), 'handler failed 160-800', 'it threw');
  equal(texts({ ...failed, status: 'COMPLETED' }, returned, 0).at(-1), 'handler running 160-800');
  equal(texts(failed, steps, 0).slice(1), [
    'browser started running 105-150',
    'handler failed 160-800',
  ]);
});

form.run();
