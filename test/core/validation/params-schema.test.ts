import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { paramsChecker, schemaProblem } from '../../../core/validation/params-schema.ts';
import { Fault } from '../../../proto/rpc/errors.ts';

const test = suite('core/validation/params-schema');

/** As zod writes it: members with a default are required. */
const SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: {
    url: { type: 'string', format: 'uri' },
    count: { type: 'integer', default: 3 },
    mail: { type: 'string', pattern: "^[A-Za-z0-9_'+\\-\\.]+@x$" },
  },
  required: ['url', 'count'],
  additionalProperties: false,
};
const version = { id: 'v1', paramsSchema: JSON.stringify(SCHEMA) };

test('defaults are filled in', () => {
  const params: Record<string, unknown> = { url: 'x', mail: 'a@x' };
  paramsChecker()(version, params);
  assert.equal(params, { url: 'x', mail: 'a@x', count: 3 });
});

const WRONG: [Record<string, unknown>, string][] = [
  [{}, 'params'],
  [{ url: 1 }, 'params/url'],
  [{ url: 'x', count: 'many' }, 'params/count'],
  [{ url: 'x', other: 1 }, 'params'],
];
for (const [params, field] of WRONG) {
  test(`${JSON.stringify(params)} fails at ${field}`, () => {
    assert.throws(
      () => paramsChecker()(version, { ...params }),
      (error: unknown) => error instanceof Fault && error.facts['field'] === field,
    );
  });
}

test('no schema and an empty one check nothing', () => {
  const check = paramsChecker();
  check({ id: 'v2', paramsSchema: null }, { any: 1 });
  check({ id: 'v3', paramsSchema: '{}' }, { any: 1 });
});

test('compiled schemas are reused, and equal ids of two versions do not conflict', () => {
  const check = paramsChecker();
  for (let i = 0; i < 3; i += 1) check(version, { url: 'x' });
  check({ id: 'v4', paramsSchema: '{"$id":"same","type":"object"}' }, {});
  check({ id: 'v5', paramsSchema: '{"$id":"same","type":"object"}' }, {});
});

test('the problem of an unusable schema is returned', () => {
  assert.is(schemaProblem(SCHEMA), undefined);
  assert.is(schemaProblem({}), undefined);
  const bad = [{ type: 'nothing' }, { $ref: 'https://elsewhere/' }, { $async: true }, 7, null];
  for (const schema of [...bad, { pattern: '(' }]) {
    assert.type(schemaProblem(schema), 'string', JSON.stringify(schema));
  }
});

test.run();
