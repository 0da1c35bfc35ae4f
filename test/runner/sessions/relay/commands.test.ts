/** Messages of a client as commands: which are valid, and the text that Chrome gets. */
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  encodeCommand,
  paramsOf,
  readMessage,
} from '../../../../runner/sessions/relay/commands.ts';

const commands = suite('runner/sessions/relay/commands');

const SESSION = '0123456789ABCDEF0123456789ABCDEF';

/** What Chrome gets of it; the error when it gets nothing. */
function passed(text: string): unknown {
  const message = readMessage(Buffer.from(text));
  return 'error' in message ? message : JSON.parse(encodeCommand(message, SESSION).toString());
}

commands('a command reaches Chrome with its id, method and params, on the session', () => {
  const id = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
  const method = fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 20 });
  const params = fc.option(fc.dictionary(fc.string(), fc.jsonValue()), { nil: undefined });
  const order = fc.shuffledSubarray(['id', 'method', 'params', 'sessionId'], { minLength: 4 });
  fc.assert(
    fc.property(id, method, params, order, fc.nat(3), (number, name, given, keys, blanks) => {
      const members: Record<string, unknown> = { id: number, method: name, params: given };
      members['sessionId'] = 'S';
      const ordered = Object.fromEntries(keys.map((key) => [key, members[key]]));
      const text = JSON.stringify(ordered, undefined, blanks);
      const read = readMessage(Buffer.from(text));
      assert.is('error' in read ? read.error.message : read.sessionId, 'S');
      const { sessionId: _, ...rest } = JSON.parse(text);
      assert.equal(passed(text), { ...rest, sessionId: SESSION });
    }),
    { numRuns: 1_000 },
  );
});

commands('a duplicate member is refused, however it is spelled', () => {
  const first = { id: '1', method: '"A.a"', sessionId: '"S"', params: '{}' };
  const names = Object.keys(first) as (keyof typeof first)[];
  const spelled = fc
    .constantFrom(...names)
    .chain((name) =>
      fc.tuple(fc.constant(name), fc.array(fc.boolean(), { minLength: 9, maxLength: 9 })),
    );
  fc.assert(
    fc.property(
      spelled,
      fc.constantFrom('null', '2', '"B.b"', '""', '{}'),
      ([name, which], value) => {
        const key = [...name].map((letter, at) => {
          return which[at] ? `\\u00${letter.charCodeAt(0).toString(16)}` : letter;
        });
        const members = names.map((one) => `"${one}":${first[one]}`);
        const text = `{${members.join(',')},"${key.join('')}":${value}}`;
        const read = readMessage(Buffer.from(text));
        assert.ok('error' in read && /duplicate map key/.test(read.error.message), text);
        assert.is('error' in read && read.id, 1);
      },
    ),
  );
});

commands('params of an inspected method are limited, and the error names the limit', () => {
  const headers = (count: number): Buffer => {
    const all = Array.from({ length: count }, (_, at) => ({ name: `${at}`, value: '' }));
    return Buffer.from(
      JSON.stringify({ id: 1, method: 'Fetch.continueRequest', params: { headers: all } }),
    );
  };
  const [few, many] = [headers(3_000), headers(4_000)].map((text) => readMessage(text));
  if (few === undefined || many === undefined || 'error' in few || 'error' in many) {
    throw new Error('both are commands');
  }
  assert.is('params' in paramsOf(few), true);
  assert.equal(paramsOf(many), {
    error: {
      code: -32602,
      message: 'Fetch.continueRequest takes at most 10000 values in its params',
    },
  });
});

commands.run();
