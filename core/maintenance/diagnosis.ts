/**
 * The checks of `tabern doctor` on the data directory of a running core, in a process of their own:
 * they read the whole database. One runs at a time, and none longer than a minute.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Finding } from '../../proto/common/diagnostics.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { CoreConfig } from '../config.ts';
import { environmentOf } from '../files/s3/place.ts';

/** Ours: of a database of some GiB. `tabern doctor` has no limit. */
const TIMEOUT_MS = 60_000;

/** A message of the process. */
export type Diagnosed = { findings: Finding[] } | { failed: string };

/** Callers at the same time share one check. Throws DEADLINE. */
export function openDiagnosis(
  options: Pick<CoreConfig, 'dataDir' | 'bucket' | 'database' | 'databaseCaFile'> & {
    closing: AbortSignal;
    timeoutMs?: number;
  },
): () => Promise<Finding[]> {
  let running: Promise<Finding[]> | undefined;
  return () => {
    running ??= diagnose(options).finally(() => {
      running = undefined;
    });
    return running;
  };
}

function diagnose({
  dataDir,
  bucket,
  closing,
  timeoutMs = TIMEOUT_MS,
  ...server
}: Parameters<typeof openDiagnosis>[0]) {
  const program = fileURLToPath(new URL('./diagnosis-process.ts', import.meta.url));
  const child = fork(program, [], {
    env: {},
    execArgv: [], // without the flags of this process
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  // not by arguments, which every user of the machine can read
  child.send({ TABERN_DATA: dataDir, ...environmentOf(bucket), ...databaseOf(server) });
  const { promise, resolve, reject } = Promise.withResolvers<Finding[]>();
  const late = new Fault('DEADLINE', 'The checks took too long. Run `tabern doctor`.');
  const timer = setTimeout(() => reject(late), timeoutMs);
  const close = () => reject(new Fault('DRAINING', 'The service is shutting down.'));
  closing.addEventListener('abort', close, { once: true });
  child.once('error', reject); // the process did not start
  child.once('exit', () => reject(new Error('the checks ended without a result')));
  child.once('message', (message: Diagnosed) => {
    if ('findings' in message) resolve(message.findings);
    else reject(new Error(`the checks failed: ${message.failed}`));
  });
  return promise.finally(() => {
    clearTimeout(timer);
    closing.removeEventListener('abort', close);
    child.kill('SIGKILL');
  });
}

/** The settings of the database, for another process. */
function databaseOf({
  database,
  databaseCaFile,
}: Pick<CoreConfig, 'database' | 'databaseCaFile'>): Record<string, string> {
  if (database === undefined) return {};
  return {
    TABERN_DATABASE_URL: database.url,
    TABERN_DATABASE_DIRECT_URL: database.directUrl,
    ...(databaseCaFile !== undefined && { TABERN_DATABASE_CA_FILE: databaseCaFile }),
  };
}
