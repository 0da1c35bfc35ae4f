/**
 * The checks of `tabern doctor` on the data directory of a running core, in a process of their own:
 * they read the whole database. One runs at a time, and none longer than a minute.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Finding } from '../../proto/common/diagnostics.ts';
import { Fault } from '../../proto/rpc/errors.ts';

/** Ours: of a database of some GiB. `tabern doctor` has no limit. */
const TIMEOUT_MS = 60_000;

/** A message of the process. */
export type Diagnosed = { findings: Finding[] } | { failed: string };

/** Callers at the same time share one check. Throws DEADLINE. */
export function openDiagnosis(options: {
  dataDir: string;
  closing: AbortSignal;
  timeoutMs?: number;
}): () => Promise<Finding[]> {
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
  closing,
  timeoutMs = TIMEOUT_MS,
}: Parameters<typeof openDiagnosis>[0]) {
  const program = fileURLToPath(new URL('./diagnosis-process.ts', import.meta.url));
  const child = fork(program, [dataDir], {
    env: {},
    execArgv: [], // without the flags of this process
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
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
