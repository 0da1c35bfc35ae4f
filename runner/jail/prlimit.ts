/**
 * Resource limits of a jailed process, set by util-linux' prlimit before anything else in the jail,
 * so that they also apply to the jail's own set-up. A limit is per process (data, files, file size)
 * or per uid (processes); memory in use is limited by memory-limit.ts.
 */
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';

export type JailLimits = {
  /** Anonymous memory of one process (RLIMIT_DATA). Not for Chrome: V8 reserves too much. */
  dataBytes?: number;
  /** Memory in use, of all processes together: when exceeded, all of them end. */
  memoryBytes?: number;
  /** Open files of one process. */
  files: number;
  /** The largest file that one process may write. */
  fileBytes?: number;
  /** Processes and threads of the jail; needs a cgroup, or a uid of its own (a root runner). */
  processes?: number;
  /** CPU time of one process, in seconds (RLIMIT_CPU): when exceeded, the process ends. */
  cpuSeconds?: number;
  /** The nice value: 0 to 19. */
  nice?: number;
};

/** PATH is not used: the user who starts the runner must not choose its jailer. */
const PROGRAM_DIRS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin'];

/** The path of a system program; undefined when it is not installed. */
export function findProgram(name: string): string | undefined {
  return PROGRAM_DIRS.map((dir) => join(dir, name)).find(isExecutable);
}

export function isExecutable(path: string): boolean {
  return hasAccess(path, constants.X_OK);
}

export function hasAccess(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false; // missing or not permitted: the same to every caller
  }
}

/** The arguments before a command. No core dumps: they would contain a tenant's memory. */
export function limitArgv(
  prlimit: string | undefined,
  limits: JailLimits,
  hasOwnUid: boolean,
): string[] {
  const { dataBytes, files, fileBytes, processes, cpuSeconds } = limits;
  const nice = limits.nice === undefined ? undefined : findProgram('nice');
  const behind = nice === undefined ? [] : [nice, '-n', String(limits.nice)];
  if (prlimit === undefined) return behind;
  return [
    ...behind,
    prlimit,
    '--core=0',
    `--nofile=${files}`,
    ...(dataBytes === undefined ? [] : [`--data=${dataBytes}`]),
    ...(fileBytes === undefined ? [] : [`--fsize=${fileBytes}`]),
    ...(cpuSeconds === undefined ? [] : [`--cpu=${cpuSeconds}`]),
    ...(processes === undefined || !hasOwnUid ? [] : [`--nproc=${processes}`]),
    '--',
  ];
}
