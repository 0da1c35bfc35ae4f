/**
 * The gateway's conversion of JSON and messages equals protobuf's own, through bytes: a call in the
 * process is the same as one over gRPC. Values of every annotated RPC are generated.
 */
import {
  type DescField,
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  ScalarType,
  toBinary,
  toJson,
} from '@bufbuild/protobuf';
import * as fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { jsonOf, messageOf } from '../../../gateway/rest/messages.ts';
import { type Operation, operationsOf, readContract } from '../../../gateway/rest/operations.ts';
import { must } from '../../../proto/common/must.ts';
import type { AnyMethod } from '../../../proto/rpc/local.ts';
import { SERVICES } from '../../../proto/rpc/services.ts';

const test = suite('gateway/rest/messages');

const RUNS = { numRuns: 30 };
const OPERATIONS = operationsOf(readContract());
const METHODS = Object.values(SERVICES).flatMap((one): AnyMethod[] => Object.values(one));

const SCALARS: Partial<Record<ScalarType, fc.Arbitrary<JsonValue>>> = {
  [ScalarType.STRING]: fc.string(),
  [ScalarType.BOOL]: fc.boolean(),
  [ScalarType.UINT32]: fc.nat(),
  [ScalarType.DOUBLE]: fc.double({ noNaN: true, noDefaultInfinity: true }).map((one) => one + 0),
};
const KNOWN: Readonly<Record<string, fc.Arbitrary<JsonValue>>> = {
  'google.protobuf.Struct': fc.constantFrom({}, { a: 1, b: [null, 'x', { c: true }] }),
  'google.protobuf.Value': fc.constantFrom<JsonValue[]>(null, 1.5, 'x', [1, { a: null }], {}),
  'google.protobuf.Timestamp': fc
    .integer({ min: 0, max: 4_000_000_000 })
    .map((seconds) => new Date(seconds * 500).toISOString()),
};

function valuesOf(field: DescField): fc.Arbitrary<JsonValue> {
  if (field.message) return KNOWN[field.message.typeName] ?? messagesOf(field.message);
  if (field.enum) return fc.constantFrom(...field.enum.values.map(({ name }) => name));
  return must(SCALARS[must(field.scalar, 'scalar')], `${field}`);
}

/** Any of the fields may be absent. */
function messagesOf({ fields }: DescMessage): fc.Arbitrary<Record<string, JsonValue>> {
  const members = fields.map((field) => {
    const one = valuesOf(field);
    return [field.jsonName, field.fieldKind === 'list' ? fc.array(one, { maxLength: 3 }) : one];
  });
  const message = fc.record(Object.fromEntries(members), { requiredKeys: [] });
  return message as fc.Arbitrary<Record<string, JsonValue>>;
}

function generatedOf({ method }: Operation): AnyMethod {
  const path = `/${method.parent.typeName}/${method.name}`;
  return must(
    METHODS.find((one) => one.path === path),
    path,
  );
}

test('JSON becomes the message that its bytes decode to', async () => {
  for (const operation of OPERATIONS) {
    const { input } = operation.method;
    const { requestDeserialize } = generatedOf(operation);
    const same = fc.property(messagesOf(input), (json) => {
      const decoded = requestDeserialize(Buffer.from(toBinary(input, fromJson(input, json))));
      assert.equal(messageOf(input, json), decoded);
    });
    await fc.assert(same, RUNS);
  }
});

test('a message prints the JSON that its bytes print', async () => {
  for (const operation of OPERATIONS) {
    const { output } = operation.method;
    const { responseDeserialize, responseSerialize } = generatedOf(operation);
    const same = fc.property(messagesOf(output), (json) => {
      const bytes = Buffer.from(toBinary(output, fromJson(output, json)));
      const message = responseDeserialize(bytes);
      const printed = fromBinary(output, responseSerialize(message));
      const expected = toJson(output, printed, { alwaysEmitImplicit: true });
      assert.is(JSON.stringify(jsonOf(output, message)), JSON.stringify(expected));
    });
    await fc.assert(same, RUNS);
  }
});

test('members that are not in the contract are dropped', () => {
  const { output } = must(
    OPERATIONS.find(({ method }) => method.localName === 'getContext'),
    'getContext',
  ).method;
  const context = { id: 'c', projectId: 'p', secret: 'x' };
  assert.equal(jsonOf(output, { context, more: 1 }), { context: { id: 'c', projectId: 'p' } });
});

test.run();
