/**
 * What a profile may hold: each thing that it may not is the one error. proto/spec/contexts.md 4.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PROFILE_LIMITS } from '../../../proto/archives/context-entries.ts';
import { expectInvalid, judge } from './judge.ts';
import { type Part, paxRecord, sealedByHand, tarOf } from './sealed.ts';

const rules = suite('proto/archives/context-entries');

const NOT_ALLOWED: Record<string, Part[]> = {
  'a name that leads out': [{ path: '../a' }],
  'a name that leads out from within': [{ path: 'a/../../b' }],
  'an absolute name': [{ path: '/etc/passwd' }],
  'an empty name': [{ path: '' }],
  'a name of nothing': [{ path: 'a//b' }],
  'a dot within': [{ path: 'a/./b' }],
  'a control character': [{ path: 'a\nb' }],
  'a symbolic link': [{ path: 'a', type: '2', link: '/etc/passwd' }],
  'a hard link': [{ path: 'a' }, { path: 'b', type: '1', link: 'a' }],
  'a character device': [{ path: 'a', type: '3' }],
  'a block device': [{ path: 'a', type: '4' }],
  'a pipe': [{ path: 'a', type: '6' }],
  'a sparse file': [{ path: 'a', type: 'S' }],
  'a type of its own': [{ path: 'a', type: 'Z' }],
  'a set-uid file': [{ path: 'a', mode: 0o4755 }],
  'a file twice': [{ path: 'a' }, { path: 'a' }],
  'a file twice, spelt otherwise': [{ path: 'a' }, { path: './a' }],
  'a directory twice': [
    { path: 'a/', type: '5' },
    { path: 'a/', type: '5' },
  ],
  'two cases of a name': [{ path: 'Cookies' }, { path: 'cookies' }],
  'two cases of a parent': [{ path: 'Default/a' }, { path: 'default/b' }],
  'two forms of a name': [{ path: 'e\u0301' }, { path: '\u00e9' }],
  'a file below a file': [{ path: 'a' }, { path: 'a/b' }],
  'a file over a directory': [{ path: 'a/b' }, { path: 'a' }],
  'a directory with bytes': [{ path: 'a/', type: '5', body: 'x' }],
  'an entry that ends early': [{ path: 'a', body: 'x', size: 5_000 }],
  'a size beyond all': [{ path: 'a', size: 0o77777777777 }],
  'a name of 256 bytes': longName(256),
  'a name with a NUL': [{ path: 'x', type: 'x', body: paxRecord('path', 'a\0b') }, { path: 'a' }],
  'a name without an entry': [{ path: 'x', type: 'x', body: paxRecord('path', 'a') }],
  'a damaged pax header': [{ path: 'x', type: 'x', body: '8 path=a\n' }, { path: 'a' }],
  'a pax name that leads out': [
    { path: 'x', type: 'x', body: paxRecord('path', '../a') },
    { path: 'a' },
  ],
  'a GNU name that leads out': [{ path: 'x', type: 'L', body: '../a\0' }, { path: 'a' }],
};

function longName(length: number): Part[] {
  const path = 'n'.repeat(length);
  return [{ path: 'x', type: 'x', body: paxRecord('path', path) }, { path: 'n' }];
}

for (const [name, parts] of Object.entries(NOT_ALLOWED)) {
  rules(`refused: ${name}`, () => expectInvalid(sealedByHand(tarOf(parts))));
}

rules('a name of 255 bytes is a name', async () => {
  assert.equal(await judge(sealedByHand(tarOf(longName(255)))), { entries: 1, bytes: 0 });
});

rules('refused: a tar without its end, with half of it, or with more behind it', async () => {
  const parts = [{ path: 'a', body: 'x' }];
  await judge(sealedByHand(tarOf(parts)));
  for (const end of [Buffer.alloc(0), Buffer.alloc(512), Buffer.alloc(2_048, 'x')]) {
    await expectInvalid(sealedByHand(tarOf(parts, end)));
  }
  const more = Buffer.concat([Buffer.alloc(1_024), tarOf([{ path: '../a' }])]);
  await expectInvalid(sealedByHand(tarOf(parts, more)));
  const wrongSum = tarOf(parts);
  wrongSum.writeUInt8(0x41, 1);
  await expectInvalid(sealedByHand(wrongSum));
});

rules('50,000 entries are allowed, one more is not, and directories in names count', async () => {
  const files = (count: number) => Array.from({ length: count }, (_, at) => ({ path: `f${at}` }));
  const { entriesMax } = PROFILE_LIMITS;
  const loose = { ...PROFILE_LIMITS, ratioMax: 1_000 }; // empty files pack 150 to 1
  assert.is(entriesMax, 50_000);
  await judge(sealedByHand(tarOf(files(entriesMax))), loose);
  await expectInvalid(sealedByHand(tarOf(files(entriesMax + 1))), loose);
  const limits = { ...PROFILE_LIMITS, entriesMax: 3 };
  await judge(sealedByHand(tarOf([{ path: 'a/b/c' }])), limits);
  await expectInvalid(sealedByHand(tarOf([{ path: 'a/b/c/d' }])), limits);
});

rules.run();
