import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { checkManifests } from '../../../core/validation/manifests.ts';

const test = suite('core/validation/manifests');

function manifest(name: string, more: { config?: string; schema?: string } = {}) {
  const { config: sessionConfigJson = '', schema: paramsSchemaJson = '' } = more;
  return { name, sessionConfigJson, paramsSchemaJson };
}

function codeOf(...found: ReturnType<typeof manifest>[]): string | undefined {
  const checked = checkManifests(found);
  return checked.kind === 'bad' ? checked.cause.code : undefined;
}

test('valid manifests receive new ids', () => {
  const checked = checkManifests([manifest('a', { config: '{"timeout":60}' }), manifest('b')]);
  assert.is(checked.kind, 'good');
  if (checked.kind !== 'good') return;
  assert.equal(
    checked.manifests.map(({ name, sessionConfig }) => [name, sessionConfig]),
    [
      ['a', '{"timeout":60}'],
      ['b', null],
    ],
  );
  assert.is(new Set(checked.manifests.flatMap((m) => [m.functionId, m.versionId])).size, 4);
});

test('no function, and more than ten, are refused', () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => manifest(`f${i}`));
  assert.is(codeOf(), 'NO_MANIFESTS_FOUND');
  assert.is(codeOf(...many(10)), undefined);
  assert.is(codeOf(...many(11)), 'TOO_MANY_MANIFESTS');
});

test('a manifest of 64 KiB passes, a larger one does not', () => {
  const schema = (bytes: number) => JSON.stringify({ description: 'x'.repeat(bytes - 18) });
  assert.is(schema(100).length, 100);
  assert.is(codeOf(manifest('f', { schema: schema(65_535) })), undefined);
  assert.is(codeOf(manifest('f', { schema: schema(65_536) })), 'MANIFEST_TOO_LARGE');
});

test('the error for an invalid sessionConfig names the field and the function', () => {
  const checked = checkManifests([manifest('f', { config: '{"keepAlive":true}' })]);
  assert.equal(checked, {
    kind: 'bad',
    cause: {
      code: 'INVALID_SESSION_CREATE_PARAMS',
      message: 'Function "f": sessionConfig.keepAlive is not accepted here.',
    },
  });
  assert.is(codeOf(manifest('f', { config: '{' })), 'INVALID_SESSION_CREATE_PARAMS');
});

test('a schema that cannot be used fails the build', () => {
  assert.is(codeOf(manifest('f', { schema: '{"type":"nothing"}' })), 'BUILD_ERROR');
  assert.is(codeOf(manifest('f', { schema: '{' })), 'BUILD_ERROR');
});

test('names have 1 to 128 characters, no slash and no control characters', () => {
  for (const name of ['a', 'x'.repeat(128), 'my function', '名前', '🙂'.repeat(128)]) {
    assert.is(codeOf(manifest(name)), undefined, name);
  }
  for (const name of ['', 'x'.repeat(129), 'a/b', 'a\nb', '\0']) {
    assert.is(codeOf(manifest(name)), 'BUILD_ERROR', JSON.stringify(name));
  }
});

test('the last definition of a name wins', () => {
  const checked = checkManifests([manifest('f'), manifest('f', { config: '{"timeout":70}' })]);
  if (checked.kind !== 'good') throw new Error('refused');
  assert.is(checked.manifests.length, 1);
  assert.is(checked.manifests[0]?.sessionConfig, '{"timeout":70}');
});

test.run();
