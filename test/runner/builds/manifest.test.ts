/** Validation of introspection's result: accepted manifests, and the cause of each refusal. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { BuildFailure } from '../../../runner/builds/build-failure.ts';
import { readManifests } from '../../../runner/builds/manifest.ts';

const manifest = suite('runner/builds/manifest');
const SESSION = 'INVALID_SESSION_CREATE_PARAMS';
const named = (count: number) => Array.from({ length: count }, (_, at) => ({ name: `f${at}` }));

function failureOf(found: unknown): BuildFailure {
  try {
    readManifests(found);
  } catch (error) {
    if (error instanceof BuildFailure) return error;
    throw error;
  }
  throw new Error('it was taken');
}

manifest('known members become JSON, missing ones an empty text, unknown ones are dropped', () => {
  const parametersSchema = { type: 'object' };
  const found = [
    { name: 'a', sessionConfig: { timeout: 900, proxies: true }, parametersSchema, extra: 1 },
    { name: 'b' },
  ];
  assert.equal(readManifests(found), [
    {
      name: 'a',
      sessionConfigJson: '{"timeout":900,"proxies":true}',
      paramsSchemaJson: '{"type":"object"}',
    },
    { name: 'b', sessionConfigJson: '', paramsSchemaJson: '' },
  ]);
});

manifest('ten functions are accepted, eleven are too many', () => {
  assert.is(readManifests(named(10)).length, 10);
  assert.is(failureOf(named(11)).code, 'TOO_MANY_MANIFESTS');
});

manifest('64 KiB of options are accepted, one byte more is too large', () => {
  const sized = (bytes: number) => {
    const empty = JSON.stringify({ type: '' }).length + 'a'.length;
    return [{ name: 'a', parametersSchema: { type: 'x'.repeat(bytes - empty) } }];
  };
  assert.is(readManifests(sized(64 * 1024)).length, 1);
  assert.is(failureOf(sized(64 * 1024 + 1)).code, 'MANIFEST_TOO_LARGE');
});

for (const [what, found, code, message] of [
  ['no functions', [], 'NO_MANIFESTS_FOUND', /defines no function; call defineFn/],
  ['no list', { 0: 'a' }, 'BUILD_ERROR', /no list/],
  ['nothing', undefined, 'BUILD_ERROR', /no list/],
  ['a member that is no object', ['a'], 'BUILD_ERROR', /not an object/],
  ['no name', [{}], 'BUILD_ERROR', /usable name/],
  ['a name with a slash', [{ name: '../a' }], 'BUILD_ERROR', /usable name/],
  ['a long name', [{ name: 'x'.repeat(129) }], 'BUILD_ERROR', /usable name/],
  ['a name twice', [{ name: 'a' }, { name: 'a' }], 'BUILD_ERROR', /twice/],
  ['a schema that is a list', [{ name: 'a', parametersSchema: [] }], 'BUILD_ERROR', /"a" is not a/],
  ['session options that are a list', [{ name: 'a', sessionConfig: [] }], SESSION, /an object/],
  ['a refused option', [{ name: 'a', sessionConfig: { region: 'x' } }], SESSION, /set region/],
  ['a short timeout', [{ name: 'a', sessionConfig: { timeout: 59 } }], SESSION, /60 to 900/],
  ['a long timeout', [{ name: 'a', sessionConfig: { timeout: 901 } }], SESSION, /60 to 900/],
  ['a timeout in words', [{ name: 'a', sessionConfig: { timeout: '60' } }], SESSION, /60 to 900/],
] as const) {
  manifest(`${what}: refused`, () => {
    const failure = failureOf(found);
    assert.is(failure.code, code);
    assert.match(failure.message, message);
  });
}

manifest('deeply nested options of a hostile host are refused', () => {
  const depth = 1e6;
  const json = `[{"name":"a","parametersSchema":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}]`;
  const failure = failureOf(JSON.parse(json));
  assert.is(failure.code, 'BUILD_ERROR');
  assert.match(failure.message, /nested too deeply/);
});

manifest.run();
