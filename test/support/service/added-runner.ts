/** The settings of a runner that a test adds to a running service. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../port.ts';

/** Of the runners of apart/split.ts. */
export const RUNNER_HOST = '127.0.0.3';

type Variables = Record<string, string>;

/** It reaches core by the socket of the data directory; over mTLS with the roles apart. */
export async function addedRunner(dataDir: string): Promise<Variables> {
  const token = readFileSync(join(dataDir, 'keys', 'runner.token'), 'utf8').trim();
  const file = remoteFile(dataDir);
  if (!existsSync(file)) {
    return { TABERN_RUNNER_TOKEN: token, TABERN_CORE: `unix:${dataDir}/core.sock` };
  }
  const remote = JSON.parse(readFileSync(file, 'utf8')) as Variables;
  const listen = `${RUNNER_HOST}:${await freePort()}`;
  return { TABERN_RUNNER_TOKEN: token, TABERN_RUNNER_LISTEN: listen, ...remote };
}

/** For `addedRunner`, of roles apart: its id, the address before the cores, and a certificate. */
export function saveAddedRunner(dataDir: string, variables: Variables): void {
  writeFileSync(remoteFile(dataDir), JSON.stringify(variables));
}

const remoteFile = (dataDir: string) => join(`${dataDir}-certs`, 'runner.json');
