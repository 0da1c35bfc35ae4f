/** The id of a runner: a setting, or one per data directory, stable over restarts. */
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createFile, replaceFile } from '../../proto/common/durable.ts';
import { ConfigError } from '../../proto/common/env.ts';
import type { Log } from '../../proto/common/log.ts';
import { readCertificate } from '../../proto/tls/pem-files.ts';
import type { Config } from '../config.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

type Given = Pick<Config, 'dataDir' | 'runnerId' | 'listen'>;

/**
 * The setting, else that of the data directory. Throws a ConfigError when gateways would refuse its
 * certificate.
 */
export function runnerId(config: Given, log: Log): string {
  const id = config.runnerId ?? storedRunnerId(config.dataDir, log);
  const cert = config.listen?.tls?.cert;
  if (cert === undefined || readCertificate(cert).checkHost(id) !== undefined) return id;
  throw new ConfigError(
    `${cert.source} is not a certificate for ${id}: set TABERN_RUNNER_ID to a name in it, or ` +
      `create it with that name (\`tabern certs create ${id}\`)`,
  );
}

/** Replaces a file without a valid UUID; core then treats the old id's work as lost. */
export function storedRunnerId(dataDir: string, log: Log): string {
  const path = join(dataDir, 'keys', 'runner.id');
  if (!existsSync(path)) create(path);
  const found = readFileSync(path, 'utf8').trim();
  if (UUID.test(found)) return found;
  const id = randomUUID();
  log.warn({ path, length: found.length }, 'the file of the runner id holds no UUID: replaced');
  replaceFile(path, `${id}\n`);
  return id;
}

function create(path: string): void {
  try {
    createFile(path, `${randomUUID()}\n`);
  } catch (error) {
    // another runner may have created it
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
