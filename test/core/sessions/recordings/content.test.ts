/** The bytes behind the signed URLs of recordings. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { mp4Index } from '../../../../core/sessions/recordings/mp4-index.ts';
import { must } from '../../../../proto/common/must.ts';
import { faultOf } from '../../../support/fault.ts';
import { boot } from '../../boot.ts';
import { bring, end, list, read, replay, request, run } from './recorded.ts';

const test = suite('core/sessions/recordings/content');

test('a whole video has its index before the segments, and supports ranges', async () => {
  await using app = await boot();
  const one = await run(app);
  await bring(app, one);
  await end(app, one);
  await request(app, one.id);
  const url = must((await list(app, one.id))[0]?.downloadUrl, 'a link');
  const whole = await read(app, url);
  assert.is(whole.size, whole.text.length);
  assert.ok(whole.text.startsWith('start\0\0\0'));
  assert.is(whole.text.slice(9, 13), 'sidx');
  assert.ok(whole.text.endsWith('firstsecond!'));
  for (const [offset, length] of [
    [0, 5],
    [3, 10],
    [60, 8],
    [whole.text.length - 3, 3],
    [5, 0],
  ] as const) {
    const part = await read(app, url, { offset, length });
    assert.equal(part, { text: whole.text.slice(offset, offset + length), size: whole.size });
  }
  const past = read(app, url, { offset: whole.text.length + 1 });
  assert.is((await faultOf(past)).facts['field'], 'offset');
});

test('a link is valid for its recording only, and for six hours', async () => {
  await using app = await boot();
  const one = await run(app);
  await bring(app, one);
  const { initUrl, segments } = await replay(app, one.id, '0');
  const other = initUrl.replace('/0/0.mp4', '/0/1.m4s');
  assert.is((await faultOf(read(app, other))).reason, 'URL_SIGNATURE_INVALID');
  const [segment] = segments;
  assert.is((await read(app, must(segment, 'segment').url)).text, 'first');
  app.clock.advance(6 * 3_600_000);
  assert.is((await faultOf(read(app, initUrl))).reason, 'URL_EXPIRED');
});

test('an index names the size and the time of each segment', () => {
  const box = mp4Index([
    { size: 10, durationMs: 30_000 },
    { size: 7, durationMs: 1 },
  ]);
  assert.is(box.length, 56);
  assert.is(box.readUInt32BE(0), 56);
  assert.is(box.readUInt32BE(16), 1_000);
  assert.is(box.readUInt16BE(30), 2);
  assert.equal(
    [32, 36, 44, 48].map((at) => box.readUInt32BE(at)),
    [10, 30_000, 7, 1],
  );
});

test.run();
