/** Receipts of stored bytes: who may use one, where, and for how long. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { sealerOf } from '../../../core/common/sealer.ts';
import { openReceipts } from '../../../core/files/receipts.ts';
import { testClock } from '../../support/clock.ts';

const test = suite('core/files/receipts');

const BLOB = {
  id: newId(),
  projectId: newId(),
  kind: 'RECORDING',
  size: 5,
  sha256: 'a'.repeat(64),
  leaseId: newId(),
} as const;

function openScene() {
  const clock = testClock();
  const open = (place: string, key = 1) =>
    openReceipts({ sealer: sealerOf(Buffer.alloc(32, key)), place, now: clock.now });
  return { clock, open };
}

test('every core of an installation reads a receipt, for 15 minutes', () => {
  const { clock, open } = openScene();
  const receipt = open('s3://a').make(BLOB);
  assert.equal(open('s3://a').read(receipt), BLOB);
  clock.advance(899_999);
  assert.equal(open('s3://a').read(receipt), BLOB);
  clock.advance(1);
  assert.is(open('s3://a').read(receipt), undefined);
});

test('a receipt of another place or installation, and a changed one, are none', () => {
  const { open } = openScene();
  const receipts = open('/data/blobs');
  const receipt = receipts.make(BLOB);
  assert.is(open('s3://a').read(receipt), undefined, 'moved meanwhile');
  assert.is(open('/data/blobs', 2).read(receipt), undefined, 'another key');
  const [text = '', mac = ''] = receipt.split('.');
  const larger = Buffer.from(text, 'base64url').toString().replace('"size":5', '"size":6');
  for (const changed of [
    '',
    '.',
    text,
    `${text}.`,
    `.${mac}`,
    `${text}.${mac.slice(1)}`,
    `${Buffer.from(larger).toString('base64url')}.${mac}`,
    `${Buffer.from('{}').toString('base64url')}.${mac}`,
  ]) {
    assert.is(receipts.read(changed), undefined, changed);
  }
});

test.run();
