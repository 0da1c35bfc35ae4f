/** The bound of a pattern's program, taken from its text alone. */
import { RE2JS } from 're2js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { patternOf, patternProblem } from '../../../proto/network/patterns.ts';

const patterns = suite('proto/network/patterns');

/** In instructions: more than the bound, since the estimate leaves out what groups cost. */
const PROGRAM_MAX = 3_000;
const PARTS = [
  ...['a', '.', '\\pL', '[a-z]', '\\w', '[^)]', '[()]', '[]a]', '[^]x]', '[[:alpha:]]', '\\{'],
  ...['(?:', '(', ')', ')', '|', '(?i)', '(?P<n>', '\\b', '$', '^', '\\x{41}', '\\Qab(\\E'],
  ...['{30}', '{2,50}', '{0,700}', '{10,}', '*', '+', '?', '??', 'k', 's'],
];

patterns('common patterns pass', () => {
  const usual = [
    '.*\\.example\\.com$',
    '^([a-z0-9-]{1,63}\\.){1,10}example\\.com$',
    '^(?:\\d{1,3}\\.){3}\\d{1,3}$',
    'shop|cart|checkout',
    '[)]{3}',
  ];
  for (const text of usual) {
    assert.is(patternProblem(text), undefined, text);
    assert.ok(patternOf(text), text);
  }
});

patterns('a text that is not an expression of RE2 throws', () => {
  for (const text of ['(', 'a(?=b)', '[']) assert.throws(() => patternOf(text), /RE2/);
});

patterns('a text with too large a program is refused without compiling it', () => {
  const large = [
    'a'.repeat(257),
    `(?:${'.?'.repeat(100)}){1000}`,
    'a{1000}'.repeat(36),
    '(?:[)].?.?){1000}',
    '((((a?b){10}){10}){10})',
  ];
  for (const text of large) {
    const before = process.threadCpuUsage();
    assert.ok(patternProblem(text), text);
    assert.throws(() => patternOf(text), /too large/);
    const { user } = process.threadCpuUsage(before);
    assert.ok(user < 50_000, `${user} us for ${text}`);
  }
});

patterns('whatever passes compiles to a program of bounded size', () => {
  let seed = 1;
  const drawn = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((seed / 2 ** 31) * below);
  };
  let compiled = 0;
  for (let n = 0; n < 20_000; n += 1) {
    const length = 1 + drawn(12);
    const text = Array.from({ length }, () => PARTS[drawn(PARTS.length)]).join('');
    if (patternProblem(text) !== undefined) continue;
    let pattern: RE2JS;
    try {
      pattern = RE2JS.compile(text, RE2JS.CASE_INSENSITIVE);
    } catch {
      continue; // none of RE2
    }
    compiled += 1;
    assert.ok(pattern.programSize() <= PROGRAM_MAX, `${text}: ${pattern.programSize()}`);
  }
  assert.ok(compiled > 1_000, `${compiled} were expressions`);
});

patterns.run();
