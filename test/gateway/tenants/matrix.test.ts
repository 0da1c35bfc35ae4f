/**
 * The tenant matrix (proto/spec/rest.md 6), generated from the published description and the
 * operations of the console: each operation, with an own object, another project's, a deleted,
 * missing or malformed one; with a valid key, another project's, a revoked one, none, two. Another
 * project's object must be indistinguishable from a missing one.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  isPublished,
  jsonName,
  operationsOf,
  readContract,
} from '../../../gateway/rest/operations.ts';
import { type Answer, ask } from '../sessions/runner.ts';
import { kindsOf, MALFORMED, MISSING, openMatrix } from './matrix.ts';
import { ROWS, type Row } from './rows.ts';
import type { Objects } from './tenant.ts';

const test = suite('gateway/tenants/matrix');

const GUARDED = Object.entries(ROWS).filter(([, { open }]) => open === undefined);

/** The response as a client sees it, without the ids that it sent itself. */
function seen({ status, text }: Answer, objects: Objects): string {
  const known = new Set(Object.values(objects));
  const words = [...known].reduce((rest, id) => rest.replaceAll(id, '<id>'), text);
  return `${status} ${words}`;
}

/** Each kind that the row names, exchanged alone, and all at once. */
function exchanged(row: Row, own: Objects, by: Objects): Objects[] {
  const kinds = kindsOf(row);
  const one = kinds.map((kind) => ({ ...own, [kind]: by[kind] }));
  return kinds.length > 1 ? [...one, { ...own, ...by }] : one;
}

test('each operation has a row, and each row an operation', async () => {
  await using matrix = await openMatrix();
  const { json } = await ask(matrix.gateway.url, 'GET', '/openapi.json');
  const { paths } = json as { paths: Record<string, object> };
  const described = Object.entries(paths).flatMap(([path, verbs]) =>
    Object.keys(verbs).map((verb) => `${verb.toUpperCase()} ${path}`),
  );
  assert.equal(Object.keys(ROWS).sort(), [...described, ...ofConsole()].sort());
});

/** Served, and not described. */
function ofConsole(): string[] {
  const operations = operationsOf(readContract()).filter((one) => !isPublished(one));
  return operations.map(({ verb, template, method }) => {
    const path = template.replace(/\{(\w+)\}/g, (_, name) => `{${jsonName(method.input, name)}}`);
    return `${verb.toUpperCase()} ${path}`;
  });
}

test('without a valid key every answer is 401', async () => {
  await using matrix = await openMatrix();
  const { own, other, revoked, send } = matrix;
  const strangers = [
    ...([[], [own.key, other.key], [own.key, own.key]] as const),
    ...([revoked, `${own.key}x`] as const),
  ];
  for (const [route, row] of GUARDED) {
    for (const keys of strangers) {
      const first = await send(route, row, own.objects, keys);
      assert.is(first.status, 401, `${route} ${keys}`);
      for (const objects of [MISSING, MALFORMED]) {
        const { status, text } = await send(route, row, objects, keys);
        assert.equal([status, text], [first.status, first.text], `${route} ${keys}`);
      }
    }
  }
});

test('another project’s object looks missing; a malformed id is a 400 for both', async () => {
  await using matrix = await openMatrix();
  const { own, other, send } = matrix;
  for (const [route, row] of GUARDED.filter(([, one]) => kindsOf(one).length > 0)) {
    for (const [holder, owner] of [
      [own, other],
      [other, own],
    ] as const) {
      const missing = exchanged(row, holder.objects, MISSING);
      for (const [at, objects] of exchanged(row, holder.objects, owner.objects).entries()) {
        const absent = missing[at] ?? MISSING;
        const expected = seen(await send(route, row, absent, holder.key), absent);
        assert.match(expected, /^404 /, `${route}: ${expected}`);
        assert.is(seen(await send(route, row, objects, holder.key), objects), expected, route);
      }
    }
    const malformed = seen(await send(route, row, MALFORMED, own.key), MALFORMED);
    assert.match(malformed, /^40[04] /, route);
    assert.is(seen(await send(route, row, MALFORMED, other.key), MALFORMED), malformed, route);
  }
});

test('no list and no answer contains an object of another project', async () => {
  await using matrix = await openMatrix();
  const { own, other, send } = matrix;
  const ids = Object.values(own.objects);
  for (const [route, row] of GUARDED.filter(([, { own: status }]) => status === 200)) {
    if (!route.startsWith('GET ')) continue;
    const { status, text } = await send(route, row, other.objects, other.key);
    assert.is(status, 200, route);
    for (const id of ids) assert.not(text.includes(id), `${route}: ${text}`);
  }
});

test('own objects are found, deleted objects are not, signed URLs need a signature', async () => {
  await using matrix = await openMatrix();
  const { own, other, send } = matrix;
  const deleted = await matrix.deleted();
  const rows = Object.entries(ROWS).sort(([a], [b]) => rank(a) - rank(b));
  for (const [route, row] of rows) {
    if (row.open === 'elsewhere') continue;
    if (row.open !== undefined) {
      for (const keys of [[], own.key, other.key]) {
        for (const objects of [own.objects, MISSING, deleted]) {
          assert.is((await send(route, row, objects, keys)).status, row.own, route);
        }
      }
    } else if (row.own !== 'not-run') {
      const { status, text } = await send(route, row, own.objects, own.key);
      assert.is(status, row.own, `${route}: ${text}`);
    }
    if (row.deleted === undefined) continue;
    assert.is((await send(route, row, deleted, own.key)).status, row.deleted, route);
  }
});

/** Reads first, then changes, then deletions. */
function rank(route: string): number {
  if (route.startsWith('DELETE ') || route === 'POST /v1/sessions/{id}') return 2;
  return route.startsWith('GET ') ? 0 : 1;
}

test.run();
