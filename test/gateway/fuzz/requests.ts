/** Wild requests, generated from the OpenAPI description. */
import fc, { type Arbitrary } from 'fast-check';

type Json = { [key: string]: unknown };
type Parameter = { name: string; in: 'path' | 'query' | 'header'; schema?: Json };
export type Operation = {
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema?: Json }> };
  responses: Record<string, unknown>;
};
export type Wild = {
  path: string;
  headers: Record<string, string | undefined>;
  body?: Buffer;
};

const TEXTS = [
  ...['', ' ', '0', '-1', 'null', 'true', '[]', '{}', '1e400', '../../etc/passwd', '%00', '%2e%2e'],
  ...['\u0000', '\ud800', '\u202e', 'ＡＢＣ', "' OR 1=1 --", '{{7*7}}', '<script>', 'a\r\nb: c'],
  ...['__proto__', 'constructor', 'x'.repeat(300), '🙂'.repeat(200), '٣', '1970-01-01T00:00:00Z'],
];
const NUMBERS = [0, -0, 1, -1, 0.5, 61, 2 ** 31, 2 ** 32, 2 ** 53, 1e21, 1e308, -1e308];
/** Requests that wait, wait for a moment at most. */
const WAITS = ['0', '-1', '61', 'x', '0.5', '1e3', ' 0'];

/** Wild requests for one operation; `ids` are of things that are there. */
export function wildRequests(
  template: string,
  operation: Operation,
  { ids, schemas }: { ids: readonly string[]; schemas: Record<string, Json> },
): Arbitrary<Wild> {
  const { parameters = [], requestBody } = operation;
  const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
  const text = fc.oneof(fc.constantFrom(...TEXTS), fc.string({ unit: 'binary', maxLength: 40 }));
  const known = fc.constantFrom(...ids);
  const segment = fc.oneof({ weight: 8, arbitrary: known }, text);
  const params = fc.record(Object.fromEntries(names.map((name) => [name, segment])));
  const pairs = fc.array(queryPair(parameters, known, text), { maxLength: 3 });
  const none: [string, string][] = [];
  const query = fc.oneof({ weight: 2, arbitrary: fc.constant(none) }, pairs);
  const headers = fc.record(headersOf(parameters), { requiredKeys: [] });
  const body = requestBody ? bodyOf(requestBody.content, schemas, known) : fc.constant(undefined);
  return fc.record({ params, query, headers, body }).map((drawn) => {
    const address = template.replace(/\{(\w+)\}/g, (_, name: string) => encode(drawn.params[name]));
    const asked = drawn.query.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&');
    return {
      path: asked === '' ? address : `${address}?${asked}`,
      headers: { ...drawn.headers, ...drawn.body?.headers },
      ...(drawn.body && { body: drawn.body.bytes }),
    };
  });
}

/** Half a surrogate pair has no percent encoding: a client would send a replacement. */
function encode(value: string | undefined): string {
  return encodeURIComponent((value ?? '').toWellFormed());
}

function queryPair(parameters: Parameter[], known: Arbitrary<string>, text: Arbitrary<string>) {
  const names = parameters.filter((one) => one.in === 'query').map(({ name }) => name);
  const asked = names.length > 0 ? names : ['unknown'];
  const wild = fc.oneof(fc.constantFrom('unknown', 'wait'), text);
  const name = fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...asked) }, wild);
  const value = fc.oneof(known, text, fc.constantFrom(...NUMBERS).map(String));
  return fc
    .tuple(name, value, fc.constantFrom(...WAITS))
    .map(([key, any, wait]): [string, string] => [key, key === 'wait' ? wait : any]);
}

/** Of those that the operation reads; a header holds no more than a line of Latin-1. */
function headersOf(parameters: Parameter[]): Record<string, Arbitrary<string>> {
  const line = fc.oneof(
    fc.constantFrom('', 'wait=0', 'wait=x', 'respond-async', 'x'.repeat(300), '"', '\u00ff'),
    fc.string({ maxLength: 30 }),
  );
  const own = parameters.filter((one) => one.in === 'header').map(({ name }) => name);
  const names = [...own, 'accept', 'x-request-id', 'traceparent', 'range', 'if-none-match'];
  return Object.fromEntries(names.map((name) => [name.toLowerCase(), line]));
}

function bodyOf(
  content: Record<string, { schema?: Json }>,
  schemas: Record<string, Json>,
  known: Arbitrary<string>,
): Arbitrary<{ headers: Record<string, string>; bytes: Buffer }> {
  const [type = '', { schema = {} } = {}] = Object.entries(content)[0] ?? [];
  if (type !== 'application/json') return formOf(type);
  const wild = wildJson(known);
  const value = fc.oneof(
    { weight: 6, arbitrary: ofSchema(schema, { schemas, wild, known }) },
    wild,
  );
  const text = value.map((one) => JSON.stringify(one) ?? 'undefined');
  const broken = fc
    .tuple(text, fc.nat(), fc.constantFrom('', '"', '}', ',', '\\', '\u0000', '1e400', '\u00ff'))
    .map(([whole, at, more]) => {
      const cut = at % (whole.length + 1);
      return whole.slice(0, cut) + more + whole.slice(cut + 1);
    });
  const bytes = fc.oneof({ weight: 5, arbitrary: text }, broken).map((one) => Buffer.from(one));
  return bytes.map((one) => ({ headers: { 'content-type': 'application/json' }, bytes: one }));
}

/** A form, complete or not, or another body with the type of a form. */
function formOf(type: string) {
  const bytes = fc.uint8Array({ maxLength: 2_000 }).map((one) => Buffer.from(one));
  const name = fc.constantFrom('file', 'archive', 'metadata', 'x');
  const part = fc
    .tuple(name, bytes)
    .map(([field, value]) =>
      Buffer.concat([
        Buffer.from(`--b\r\ncontent-disposition: form-data; name="${field}"; filename="x"\r\n\r\n`),
        value,
        Buffer.from('\r\n'),
      ]),
    );
  const whole = fc
    .tuple(fc.array(part, { maxLength: 3 }), fc.constantFrom('--b--\r\n', '', '--b\r\n'))
    .map(([parts, end]) => Buffer.concat([...parts, Buffer.from(end)]));
  const header = type === 'multipart/form-data' ? `${type}; boundary=b` : type;
  return fc
    .tuple(fc.oneof(whole, bytes), fc.constantFrom(header, header, header, 'text/plain'))
    .map(([one, contentType]) => ({ headers: { 'content-type': contentType }, bytes: one }));
}

type Tools = {
  schemas: Record<string, Json>;
  wild: Arbitrary<unknown>;
  known: Arbitrary<string>;
  depth?: number;
};

function wildJson(known: Arbitrary<string>): Arbitrary<unknown> {
  return fc.oneof(
    fc.constantFrom<unknown>(...TEXTS, ...NUMBERS, null, true, [], {}, [[]]),
    known,
    fc.jsonValue({ maxDepth: 4, stringUnit: 'binary' }),
  );
}

/** Mostly as the schema has it, at each place with something else now and then. */
function ofSchema(schema: Json, tools: Tools): Arbitrary<unknown> {
  const { schemas, wild, known, depth = 0 } = tools;
  const below = { ...tools, depth: depth + 1 };
  const name = /^#\/components\/schemas\/(.+)$/.exec(String(schema['$ref']))?.[1];
  if (name !== undefined) return depth > 6 ? wild : ofSchema(schemas[name] ?? {}, below);
  const mostly = (one: Arbitrary<unknown>) =>
    fc.oneof({ weight: 8, arbitrary: one }, { weight: 1, arbitrary: wild });
  if (Array.isArray(schema['enum'])) return mostly(fc.constantFrom<unknown>(...schema['enum']));
  switch (schema['type']) {
    case 'object': {
      const properties = Object.entries((schema['properties'] ?? {}) as Record<string, Json>);
      const fields = properties.map(([key, one]) => [key, ofSchema(one, below)]);
      const extra = fc.dictionary(fc.constantFrom('extra', '__proto__', 'status', 'id'), wild, {
        maxKeys: 1,
      });
      const own = fc.record(Object.fromEntries(fields), { requiredKeys: [] });
      return mostly(fc.tuple(own, extra).map(([some, more]) => ({ ...more, ...some })));
    }
    case 'array':
      return mostly(fc.array(ofSchema((schema['items'] ?? {}) as Json, below), { maxLength: 3 }));
    case 'string':
      return mostly(fc.oneof(known, fc.constantFrom(...TEXTS), fc.string({ unit: 'binary' })));
    case 'boolean':
      return mostly(fc.boolean());
    case 'integer':
    case 'number':
      return mostly(fc.oneof(fc.constantFrom(...NUMBERS), fc.integer(), fc.double()));
    default:
      return wild;
  }
}
