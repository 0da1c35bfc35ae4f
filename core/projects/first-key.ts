/**
 * The default project and its first API key. The key is sealed in keys/first.key until its first
 * use, and each start until then prints it. The database has only its hash.
 */
import { readFileSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createFile } from '../../proto/common/durable.ts';
import type { Log } from '../../proto/common/log.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { hashOf, newApiKey, newPublicId, publicIdOf } from '../api/authentication.ts';
import { newId } from '../common/ids.ts';
import type { Sealer } from '../common/sealer.ts';
import type { CoreConfig } from '../config.ts';
import type { Store } from '../store/types.ts';
import { DEFAULT_TIMEOUT } from './operators.ts';

const PLACE = 'first_key';

export type FirstStart = {
  projectId: string;
  /** After its first use only the hash is stored. */
  apiKey: string;
  /** The operator configured it. */
  isPreset: boolean;
};

export function openFirstKey(path: string, { sealer, log }: { sealer: Sealer; log: Log }) {
  /** The public part of the key in the file. */
  let keptId: string | undefined;
  const read = (): string | undefined => {
    try {
      const sealed = Buffer.from(readFileSync(path, 'utf8'), 'base64');
      return sealer.open(sealed, PLACE).toString();
    } catch (error) {
      const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT';
      if (isAbsent || error instanceof Fault) return undefined; // or `tabern keys create`
      throw error;
    }
  };
  return {
    /** The key, until its first use. */
    unused(): string | undefined {
      const key = read();
      keptId = key && publicIdOf(key);
      return key;
    },
    keep(key: string): void {
      rmSync(path, { force: true }); // a key that could not be opened
      createFile(path, `${sealer.seal(Buffer.from(key), PLACE).toString('base64')}\n`);
      keptId = publicIdOf(key);
    },
    /**
     * Called at the first use of a key, with its public part. Calls do not wait for the disk: the
     * next start removes a remaining file, because the key is used.
     */
    used(keyId: string): void {
      if (keyId !== keptId) return;
      keptId = undefined;
      rm(path, { force: true }).catch((error: unknown) => {
        log.warn({ err: error }, 'removing the file of the used first key failed');
      });
    },
  };
}

/**
 * Returns what to print until the first key is used. A preset key always belongs to the project.
 */
export async function ensureProject(
  { store, first }: { store: Store; first: ReturnType<typeof openFirstKey> },
  { concurrency, apiKey: preset }: CoreConfig,
  at: number,
): Promise<FirstStart | undefined> {
  const { id: projectId } = await store.ensureProject({
    id: newId(),
    name: 'default',
    defaultTimeout: DEFAULT_TIMEOUT,
    concurrency,
    createdAt: at,
    updatedAt: at,
  });
  const isFirst = !(await store.hasApiKeys(projectId));
  if (preset !== undefined) {
    const publicId = newPublicId(); // an existing key keeps its own
    await store.addApiKey({ hash: hashOf(preset), projectId, publicId, name: 'preset', at });
    return isFirst ? { projectId, apiKey: preset, isPreset: true } : undefined;
  }
  const kept = first.unused();
  if (!isFirst) {
    if (kept === undefined) return undefined;
    const row = await store.findApiKey(hashOf(kept));
    if (row?.lastUsedAt === null) return { projectId, apiKey: kept, isPreset: false };
    first.used(publicIdOf(kept)); // revoked, or used before a crash
    return undefined;
  }
  const key = kept ?? newApiKey().key;
  // written before the database row, or the key would be lost
  if (kept === undefined) first.keep(key);
  const publicId = publicIdOf(key);
  await store.addApiKey({ hash: hashOf(key), projectId, publicId, name: 'first', at });
  return { projectId, apiKey: key, isPreset: false };
}
