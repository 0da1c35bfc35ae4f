/** The scan agrees with JSON.parse, counts values, returns members, and costs little. */
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { JsonScan, jsonProblem } from '../../../proto/json/json-scan.ts';

const scan = suite('proto/json/json-scan');

const GOOD = [
  ...['0', '-0', '12.5e-3', '1E+9', '""', '"\\u00e9\\n\\/"', '"ä€😀"', 'true', 'false', 'null'],
  ...['[]', '{}', ' [ 1 , { "a" : [ ] } ]\r\n\t', '{"a":1,"a":2}', '{"":{"__proto__":null}}'],
];
const LETTERS = '{}[]",:\\u0123e+-. \n\tntrufalsé\u0001';

function isParsed(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

type Scanned = { values: number; isObject: boolean; members: [unknown, unknown][] };

function scanned(text: string): Scanned {
  const bytes = Buffer.from(text);
  const members: [unknown, unknown][] = [];
  const cut = (from: number, to: number): unknown => JSON.parse(bytes.toString('utf8', from, to));
  const { values, isObject } = new JsonScan(bytes, {
    onMember: (key, keyEnd, value, end) => {
      members.push([cut(key, keyEnd), cut(value, end)]);
    },
  });
  return { values, isObject, members };
}

/** Undefined: not JSON. */
function outcome<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Whether it is JSON; Chrome takes no number that overflows. */
function isFiniteJson(text: string): boolean {
  let overflows = false;
  const look = (_: string, value: unknown): unknown => {
    overflows ||= value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY;
    return value;
  };
  return outcome(() => [JSON.parse(text, look)]) !== undefined && !overflows;
}

function countOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce<number>((sum, member) => sum + countOf(member), 1);
}

const BLANK = fc.stringMatching(/^[ \t\r\n]{0,3}$/);

/** JSON of any shape, with blanks between its tokens and some characters escaped. */
const JSON_TEXT = fc
  .tuple(fc.json({ maxDepth: 6 }), fc.infiniteStream(BLANK), fc.boolean())
  .map(([text, blanks, isEscaped]) => {
    const tokens = text.match(/"(?:\\.|[^"\\])*"|[[\]{},:]|[^[\]{},:"]+/g) ?? [];
    const spaced = tokens.map((token) => `${blanks.next().value}${token}`).join('');
    return isEscaped ? spaced.replace(/[a-z](?=[a-z]*"\s*:)/g, escaped) : spaced;
  });

function escaped(letter: string): string {
  return `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

scan('every JSON text is accepted, its values counted and its members cut out', () => {
  fc.assert(
    fc.property(JSON_TEXT, (text) => {
      const value: unknown = JSON.parse(text);
      const { values, isObject, members } = scanned(text);
      const isPlain = typeof value === 'object' && value !== null && !Array.isArray(value);
      assert.is(isObject, isPlain, text);
      const entries = isPlain ? Object.entries(value) : [];
      if (new Set(members.map(([key]) => key)).size === members.length) {
        assert.is(values, countOf(value), text);
        assert.equal(new Map(members as [string, unknown][]), new Map(entries), text);
      }
    }),
    { numRuns: 2_000 },
  );
});

scan('a text with one change is accepted exactly when JSON.parse accepts it', () => {
  const pieces = [...'"\\{}[],:0-+.eE \t\n\u0000\u0001\u000b\u000c/tfnulx1a', '\ufeff', '\u00a0'];
  const change = fc.tuple(fc.nat(), fc.nat({ max: 2 }), fc.constantFrom('', ...pieces));
  let refused = 0;
  fc.assert(
    fc.property(JSON_TEXT, change, (text, [at, dropped, piece]) => {
      const from = at % (text.length + 1);
      const changed = text.slice(0, from) + piece + text.slice(from + dropped);
      // half of a pair of surrogates is no UTF-8
      const wire = Buffer.from(changed).toString();
      const ours = outcome(() => scanned(wire)) !== undefined;
      const theirs = isFiniteJson(wire);
      if (!ours) refused += 1;
      assert.is(ours, theirs, wire);
    }),
    { numRuns: 5_000 },
  );
  assert.ok(refused > 500, 'the changes break something');
});

scan('any bytes are read or refused, and never crash', () => {
  const wild = fc.string({ unit: 'binary-ascii', maxLength: 40 });
  fc.assert(
    fc.property(wild, (text) => {
      const ours = outcome(() => scanned(text)) !== undefined;
      assert.is(ours, isFiniteJson(text), text);
    }),
    { numRuns: 5_000 },
  );
});

scan("JSON that Chrome's parser refuses is refused", () => {
  const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
  for (const text of [nested(301), '{"a":'.repeat(300) + 1 + '}'.repeat(300)]) scanned(text);
  for (const text of [nested(302), '{"a":'.repeat(301) + 1 + '}'.repeat(301)]) {
    JSON.parse(text);
    assert.throws(() => scanned(text), /stack limit exceeded/);
  }
  for (const text of ['1e400', '-1e309', `1${'0'.repeat(400)}`]) {
    assert.throws(() => scanned(text), /invalid number/, text);
  }
  for (const text of ['1e308', '1e-400', `0.${'0'.repeat(400)}1`]) scanned(text);
});

scan('the scanner accepts exactly the texts that JSON.parse accepts', () => {
  let seed = 7;
  const drawn = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((seed / 2 ** 31) * below);
  };
  let [good, bad] = [0, 0];
  for (let n = 0; n < 60_000; n += 1) {
    let text = GOOD[drawn(GOOD.length)] ?? '';
    for (let edits = drawn(3); edits > 0; edits -= 1) {
      const at = drawn(text.length + 1);
      text = text.slice(0, at) + (LETTERS[drawn(LETTERS.length)] ?? '') + text.slice(at + drawn(2));
    }
    const isGood = isParsed(text);
    if (isGood) good += 1;
    else bad += 1;
    assert.is(jsonProblem(text, 300) === undefined, isGood, JSON.stringify(text));
  }
  assert.ok(good > 1_000 && bad > 1_000, `${good} good, ${bad} bad`);
});

scan('levels are counted, and no depth exhausts the stack', () => {
  const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  assert.is(jsonProblem(nested(300), 300), undefined);
  assert.is(jsonProblem(nested(301), 300), 'depth');
  assert.is(jsonProblem(nested(3_000_000), 300), 'depth');
  assert.is(jsonProblem('[[]', 300), 'syntax');
  assert.is(jsonProblem('', 300), 'syntax');
});

scan('6 MiB of any result of a handler take less than a second of CPU time', () => {
  for (const unit of ['1', '[]', '{"a":1}', '""', '"\\u0041"', `"${'x'.repeat(1_000)}"`]) {
    const count = Math.floor((6 << 20) / (unit.length + 1));
    const text = `[${Array.from({ length: count }, () => unit).join()}]`;
    const before = process.threadCpuUsage();
    assert.is(jsonProblem(text, 300), undefined);
    const { user, system } = process.threadCpuUsage(before);
    assert.ok(user + system < 1_000_000, `${(user + system) / 1_000} ms of ${unit.slice(0, 9)}`);
  }
});

scan.run();
