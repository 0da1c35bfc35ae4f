/** The scan agrees with JSON.parse, and costs little whatever the text. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { jsonProblem } from '../../../proto/json/json-scan.ts';

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

scan('whatever JSON.parse takes is JSON, and nothing else', () => {
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

scan('6 MiB of whatever a handler returns takes less than a second of CPU time', () => {
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
