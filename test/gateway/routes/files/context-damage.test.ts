/** Damaged and hostile uploads of contexts, on a whole core. proto/spec/contexts.md 4. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readHead, unwrapKeys } from '../../../../proto/archives/context-format.ts';
import { verifyProfile } from '../../../../proto/archives/context-reader.ts';
import { PAIR, type Part } from '../../../proto/archives/sealed.ts';
import { sealed, sealedText } from '../../../support/clients/contexts.ts';
import { faultOf } from '../../../support/fault.ts';
import { tempDirectory } from '../../../support/temp.ts';
import { openUploads, put } from './contexts.ts';

const test = suite('gateway/routes/files/context-damage');

test('any damage of an upload is the same 422, and the old content is kept', async () => {
  await using app = await openUploads();
  const { id, uploadUrl, publicKey } = app.context;
  const good = await sealedText(publicKey, 'good');
  await put(uploadUrl, good);
  const parts = (...all: Part[]) => sealed(publicKey, all);
  const at = (index: number) => {
    const bytes = Buffer.from(good);
    const place = index < 0 ? bytes.length + index : index;
    bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place);
    return bytes;
  };
  const damaged: Record<string, Buffer> = {
    nothing: Buffer.alloc(0),
    'no archive': randomBytes(100_000),
    truncated: good.subarray(0, -1),
    'cut in the head': good.subarray(0, 50),
    extended: Buffer.concat([good, Buffer.of(0)]),
    magic: at(0),
    version: at(4),
    'wrapped keys': at(20),
    iv: at(7 + 384),
    body: at(7 + 384 + 16),
    mac: at(-1),
    'another key': await sealedText((await app.create()).publicKey, 'x'),
    traversal: await parts({ path: '../x', body: 'x' }),
    absolute: await parts({ path: '/etc/x', body: 'x' }),
    'a symbolic link': await parts({ path: 'x', type: '2', link: '/etc/passwd' }),
    'a hard link': await parts({ path: 'x', type: '1', link: 'y' }),
    'a device': await parts({ path: 'x', type: '3' }),
    'a set-uid file': await parts({ path: 'x', mode: 0o4755, body: 'x' }),
    twice: await parts({ path: 'x', body: '1' }, { path: 'x', body: '2' }),
    'two cases': await parts({ path: 'x', body: '1' }, { path: 'X', body: '2' }),
    bomb: await parts({ path: 'x', body: Buffer.alloc(64 << 20) }),
    'too many files': await parts(...files(50_001)),
  };
  for (const [what, bytes] of Object.entries(damaged)) {
    const { status, json } = await put(uploadUrl, bytes);
    const expected = { statusCode: 422, error: 'Unprocessable Entity' };
    assert.equal(json, { ...expected, message: 'The archive is not valid.' }, what);
    assert.is(status, 422, what);
    assert.is(app.files().length, 1, what);
  }
  assert.ok(good.equals((await app.download(id)) as Buffer));
  assert.is((await put(uploadUrl, await parts(...files(50_000)))).status, 200);
});

/** With names that do not compress: equal names would be a bomb. */
function files(count: number): Part[] {
  return Array.from({ length: count }, () => ({ path: randomBytes(16).toString('hex') }));
}

/**
 * Of core's check alone, and in time of the processor: a whole request on a busy machine drowns
 * what is looked for.
 */
test('a failed decryption takes the same time for every cause', async () => {
  await using dir = tempDirectory();
  const good = await sealed(PAIR.publicKey, [{ path: 'x', body: randomBytes(16 << 20) }]);
  const wrong: Record<string, number> = {
    'wrapped keys': 20,
    iv: 7 + 256,
    body: 7 + 256 + 16,
    'the padded end': good.length - 33,
    mac: good.length - 1,
  };
  const paths = Object.entries(wrong).map(([what, place]) => {
    const path = join(dir.path, what);
    const bytes = Buffer.from(good);
    bytes.writeUInt8(bytes.readUInt8(place) ^ 1, place);
    writeFileSync(path, bytes);
    return { what, path, times: [] as number[] };
  });
  for (let round = 0; round < 15; round += 1) {
    for (const { path, times } of paths) {
      const before = process.cpuUsage();
      const keys = unwrapKeys(await readHead(path), PAIR.privateKey);
      assert.is((await faultOf(verifyProfile(path, keys))).reason, 'ARCHIVE_INVALID');
      const { user, system } = process.cpuUsage(before);
      times.push(user + system);
    }
  }
  const fastest = paths.map(({ times }) => Math.min(...times));
  // One that was decrypted, unpacked or not read to the end would be far off.
  assert.ok(Math.max(...fastest) < Math.min(...fastest) * 1.5, JSON.stringify(fastest));
});

test.run();
