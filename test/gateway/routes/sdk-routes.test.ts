/**
 * The drift alarm: every route that the installed SDK calls is in the OpenAPI description, or its
 * 501 is stated in gateway/routes/unserved.ts. The calls are read from the SDK's own sources.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isPublished, operationsOf, readContract } from '../../../gateway/rest/operations.ts';
import { describe } from '../../../gateway/routes/openapi.ts';
import { unservedSentence } from '../../../gateway/routes/unserved.ts';

const test = suite('gateway/routes/sdk-routes');

const SDK = new URL('../../../node_modules/@browserbasehq/sdk/', import.meta.url);
/** A use of the client: its member, and the path when the first argument is a literal. */
const USE = /\b_client\.(\w+)(?:\(\s*(['"`])(\/[^'"`]*)\2)?/g;

test('every route that the published SDK calls is described, or is a stated 501', () => {
  const described = describedRoutes();
  const called = calledRoutes();
  assert.ok(called.length > 50, `${called.length} routes found in the SDK`);
  const missing = called.filter((route) => {
    const path = route.slice(route.indexOf(' ') + 1).replaceAll('{}', 'x');
    return !described.has(route) && unservedSentence(path) === undefined;
  });
  assert.equal(missing, []);
});

test('a stated 501 is not described as well', () => {
  for (const route of describedRoutes()) {
    const path = route.slice(route.indexOf(' ') + 1).replaceAll('{}', 'x');
    assert.is(unservedSentence(path), undefined, route);
  }
});

test('the SDK makes its requests in its resources only, each with a literal path', () => {
  assert.equal(usesIn('x = this._client.post(path)'), [{ member: 'post', path: undefined }]);
  const uses = sources().flatMap((source) => usesIn(source));
  assert.equal(
    uses.filter(({ path }) => path === undefined),
    [],
  );
  const client = readFileSync(new URL('index.js', SDK), 'utf8');
  assert.not.match(client, /['"`]\/v1\//, 'index.js makes no request of its own');
});

function calledRoutes(): string[] {
  const routes = sources().flatMap((source) =>
    usesIn(source).map(({ member, path = '' }) => {
      return `${member.toUpperCase()} ${path.replace(/\$\{\w+\}/g, '{}')}`;
    }),
  );
  return [...new Set(routes)].sort();
}

function sources(): string[] {
  const resources = new URL('resources/', SDK);
  return readdirSync(resources, { recursive: true })
    .map(String)
    .filter((file) => file.endsWith('.js'))
    .map((file) => readFileSync(new URL(file, resources), 'utf8'));
}

function usesIn(source: string): { member: string; path: string | undefined }[] {
  return [...source.matchAll(USE)].map(([, member = '', , path]) => ({ member, path }));
}

function describedRoutes(): Set<string> {
  const registry = readContract();
  const { paths } = describe(registry, operationsOf(registry).filter(isPublished));
  const routes = Object.entries(paths as Record<string, object>).flatMap(([path, verbs]) =>
    Object.keys(verbs).map((verb) => `${verb.toUpperCase()} ${path.replace(/\{\w+\}/g, '{}')}`),
  );
  return new Set(routes);
}

test.run();
