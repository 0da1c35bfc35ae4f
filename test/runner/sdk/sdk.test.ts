/** defineFn and its registry: valid names and handlers, and the conversion of schemas. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import * as z from 'zod';
import * as mini from 'zod/mini';
import { z as z3 } from 'zod/v3';
import { toJSONSchema } from 'zod/v4/core';
import type {
  BrowserSettings,
  CreateSessionRequest,
} from '../../../proto/gen/tabern/v1/sessions.pb.ts';
import { defineFn } from '../../../runner/sdk/mod.ts';
import { definitions, manifests } from '../../../runner/sdk/registry.ts';
import { jsonSchemaOf } from '../../../runner/sdk/schema.ts';
import type { SessionConfig } from '../../../runner/sdk/types.ts';

/** Does not compile when the SDK names an option that the contract does not have. */
type Named<T> = keyof { [Key in keyof T as string extends Key ? never : Key]: T[Key] };
null as unknown as Named<SessionConfig> satisfies keyof CreateSessionRequest;
type Browser = NonNullable<SessionConfig['browserSettings']>;
null as unknown as Named<Browser> satisfies keyof BrowserSettings;

const sdk = suite('runner/sdk/sdk');
const handler = async () => null;

function messageOf(act: () => void): string {
  try {
    act();
  } catch (error) {
    assert.instance(error, TypeError);
    return (error as Error).message;
  }
  return '';
}

/** The schema and the warnings. */
function converted(schema: unknown, convert?: Parameters<typeof jsonSchemaOf>[1]) {
  const warnings: string[] = [];
  const json = jsonSchemaOf(schema, convert, (problem) => warnings.push(problem));
  return { json: json as Record<string, unknown> | undefined, warnings };
}

sdk('a name of 1 to 128 characters is accepted', () => {
  for (const name of ['a', 'x'.repeat(128), 'träger 1.2', '../up'.replaceAll('/', '-')]) {
    defineFn(name, handler);
    assert.is(definitions().get(name)?.handler, handler);
  }
});

for (const [what, name, problem] of [
  ['an empty name', '', /1 to 128 characters/],
  ['a long name', 'x'.repeat(129), /it has 129/],
  ['a name with a slash', 'a/b', /must not contain '\/'/],
  ['a name with a line break', 'a\nb', /control characters/],
  ['a name with half a character', 'a\ud800', /must not contain/],
  ['a number as name', 7, /must be a string; got number/],
  ['no name', null, /must be a string; got null/],
] as const) {
  sdk(`${what} is refused and defines nothing`, () => {
    const before = definitions().size;
    assert.match(
      messageOf(() => defineFn(name as string, handler)),
      problem,
    );
    assert.is(definitions().size, before);
  });
}

sdk('a handler that is not a function is refused with the name of its function', () => {
  const message = messageOf(() => defineFn('title', { run: handler } as never));
  assert.match(message, /defineFn\("title"\): the handler must be a function.*got object/);
  assert.not(definitions().has('title'));
});

sdk('options that are not an object are refused', () => {
  assert.match(
    messageOf(() => defineFn('listed', handler, [] as never)),
    /got an array/,
  );
});

sdk('isolation is warm or fresh, and nothing else', () => {
  for (const isolation of ['warm', 'fresh'] as const) {
    defineFn('isolated', handler, { isolation });
    assert.is(definitions().get('isolated')?.config.isolation, isolation);
  }
  const message = messageOf(() => defineFn('cold', handler, { isolation: 'cold' as never }));
  assert.match(message, /defineFn\("cold"\): isolation must be 'warm' or 'fresh'/);
  assert.not(definitions().has('cold'));
});

sdk('the last definition of a name wins', () => {
  const last = async () => 2;
  defineFn('twice', async () => 1);
  defineFn('twice', last);
  assert.is(definitions().get('twice')?.handler, last);
  assert.is(manifests().filter(({ name }) => name === 'twice').length, 1);
});

sdk('a manifest is plain JSON: its name, its session options and its schema', () => {
  const parametersSchema = { type: 'object', required: ['url'] };
  defineFn('whole', handler, { sessionConfig: { timeout: 60 }, parametersSchema });
  assert.equal(
    manifests().find(({ name }) => name === 'whole'),
    {
      name: 'whole',
      sessionConfig: { timeout: 60 },
      parametersSchema,
    },
  );
});

sdk('a manifest that is not JSON is refused with the name of its function', () => {
  defineFn('bigint', handler, { sessionConfig: { timeout: 60n } as never });
  assert.match(
    messageOf(() => manifests()),
    /defineFn\("bigint"\): sessionConfig must be plain/,
  );
  defineFn('bigint', handler);
});

sdk('a zod 4 schema converts itself, with defaulted fields as required', () => {
  const { json, warnings } = converted(z.object({ url: z.string().default('x') }));
  assert.equal(json?.['required'], ['url']);
  assert.is(json?.['additionalProperties'], false);
  assert.is(json?.['$schema'], 'https://json-schema.org/draft/2020-12/schema');
  assert.equal(warnings, []);
});

sdk('a zod 4 schema with a transform is converted from its input side', () => {
  const { json, warnings } = converted(z.object({ n: z.string().transform(Number) }));
  assert.equal(json?.['properties'], { n: { type: 'string' } });
  assert.equal(warnings, []);
});

sdk("a zod 4 schema without the method is converted by the bundle's zod", () => {
  const schema = mini.object({ a: mini.string() });
  const { json } = converted(schema, toJSONSchema as never);
  assert.equal(json?.['properties'], { a: { type: 'string' } });
  const without = converted(schema);
  assert.is(without.json, undefined);
  assert.match(without.warnings.join(), /upgrade zod/);
});

sdk('a zod 3 schema is a warning and no validation', () => {
  const { json, warnings } = converted(z3.object({ a: z3.string() }));
  assert.is(json, undefined);
  assert.match(warnings.join(), /zod 3 .* use zod 4/);
});

sdk('a standard schema converts itself, or is a warning without a conversion', () => {
  const input = ({ target }: { target: string }) => ({ $comment: target });
  const able = { '~standard': { vendor: 'v', version: 1, jsonSchema: { input } } };
  assert.equal(converted(able).json, { $comment: 'draft-2020-12' });
  const unable = converted({ '~standard': { vendor: 'valibot', version: 1 } });
  assert.is(unable.json, undefined);
  assert.match(unable.warnings.join(), /valibot has no conversion/);
});

sdk('an invalid schema is a warning', () => {
  assert.match(converted('object').warnings.join(), /is a string/);
  assert.equal(converted(undefined), { json: undefined, warnings: [] });
});

sdk('the types of a handler follow its schema', () => {
  defineFn('typed', async (ctx, { url }) => ctx.params.url.length + url.length, {
    parametersSchema: z.object({ url: z.string() }),
  });
  defineFn('annotated', async (ctx, params: { n: number }) => params.n + ctx.params.n);
  defineFn('free', async (_ctx, params) => {
    // @ts-expect-error params of a function without a schema are unknown until looked at
    return params['url'].length;
  });
  assert.ok(definitions().has('typed'));
});

sdk.run();
