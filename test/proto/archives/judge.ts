/** How a sealed profile is judged, and the one way in which it may be refused. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { PROFILE_LIMITS } from '../../../proto/archives/context-entries.ts';
import { readHead, unwrapKeys } from '../../../proto/archives/context-format.ts';
import { verifyProfile } from '../../../proto/archives/context-reader.ts';
import { faultOf } from '../../support/fault.ts';
import { type TempDirectory, tempDirectory } from '../../support/temp.ts';
import { PAIR } from './sealed.ts';

export async function keysOf(path: string, privateKey = PAIR.privateKey): Promise<Buffer> {
  return unwrapKeys(await readHead(path), privateKey);
}

export function fileWith(dir: TempDirectory, bytes: Buffer): string {
  const path = join(dir.path, randomBytes(8).toString('hex'));
  writeFileSync(path, bytes);
  return path;
}

export async function judge(bytes: Buffer, limits = PROFILE_LIMITS): Promise<unknown> {
  await using dir = tempDirectory();
  const path = fileWith(dir, bytes);
  return await verifyProfile(path, await keysOf(path), { limits });
}

/** One reason and one message, without a fact that reveals the defect. */
export async function expectInvalid(bytes: Buffer, limits = PROFILE_LIMITS): Promise<void> {
  const fault = await faultOf(judge(bytes, limits));
  assert.is(fault.reason, 'ARCHIVE_INVALID');
  assert.is(fault.message, 'The archive is not valid.');
  assert.equal(fault.facts, {});
}
