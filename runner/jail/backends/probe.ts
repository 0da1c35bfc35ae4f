/** Starts a program in a jail once, to learn whether the jail works on this machine. */
import type { Jail, JailSpec } from '../jail.ts';
import { programMounts } from '../program-mounts.ts';

/** Ours: a start takes tenths of a second. */
export const PROBE_TIMEOUT_MS = 10_000;
const STDERR_MAX_CHARS = 500;

type Probe = {
  /** The program on the host, and its path in the jail. */
  program: string;
  path: string;
  argv: JailSpec['argv'];
  nestedNamespaces?: boolean;
  /** Absent: the program is awaited, however long it takes. */
  timeoutMs?: number;
};

/** Undefined when the program exits with 0, else the reason: its stderr or its exit. */
export async function probeJail(jail: Jail, probe: Probe): Promise<string | undefined> {
  const { program, path, argv, nestedNamespaces = false, timeoutMs } = probe;
  const jailed = jail.launch({
    argv,
    mounts: await programMounts(program, path),
    env: () => ({}),
    tmpBytes: 1 << 20,
    limits: { files: 256 },
    stdio: ['ignore', 'ignore', 'pipe'],
    nestedNamespaces,
  });
  let stderr = '';
  jailed.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(0, STDERR_MAX_CHARS);
  });
  const timer = timeoutMs === undefined ? undefined : setTimeout(jailed.kill, timeoutMs);
  const { code, signal } = await jailed.exited;
  clearTimeout(timer);
  if (code === 0) return undefined;
  return stderr.trim() || `a probe ended with ${signal ?? code}`;
}
