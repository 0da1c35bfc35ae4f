/**
 * The bubblewrap backend: user, mount, pid, network, ipc, uts and cgroup namespaces, no
 * capabilities, a file system of the listed mounts only, a seccomp filter. A process in it is never
 * root of this machine: a root runner leases each jail a uid of its own.
 *
 * A root runner starts two bwraps in a row. The outer one, still root, with its own view of the
 * machine's files, makes the mounts reachable (they lie below 0700 directories that the jail's uid
 * cannot enter); then setpriv drops to the uid and the inner one builds the jail. Where root may
 * not mount (a container), the inner one alone is tried.
 */
import type { Writable } from 'node:stream';
import type { Log } from '../../../proto/common/log.ts';
import type { At, Backend, Jail, JailSpec, Mount } from '../jail.ts';
import { findProgram, limitArgv } from '../prlimit.ts';
import { killGroup, start } from '../spawn.ts';
import { uidFor } from '../uids.ts';
import { PROBE_TIMEOUT_MS, probeJail } from './probe.ts';
import { hasFilter, profileOf, seccompFilter } from './seccomp.ts';

/** Not 0, and not 65534, which files of unmapped owners show inside: they would look its own. */
const INSIDE_UID = '1000';
/** In the outer bwrap's view only: the source of a mount is resolved before this covers it. */
const STAGE = '/tmp';

/**
 * The outer bwrap gives up its capabilities and then may not signal the jail's uid, so the inner
 * one would survive its death (seen). It may signal the pid 1 that it created, which is still root,
 * and all processes below die with it. It keeps the machine's /proc: bwrap covers parts of a new
 * one, and the kernel then refuses the inner one its own.
 */
const OUTER_END = ['--unshare-pid', '--die-with-parent', '--'];

type Tools = {
  bwrap: string;
  prlimit: string | undefined;
  setpriv: string | undefined;
  log: Log;
};
/** Mounts are at their inside paths. */
const INSIDE: At = (path) => path;

/** How a root runner switches from root to the jail's uid. */
type Staging = 'staged' | 'direct';
/** Descriptors that bwrap reads from pipes, after those of the spec. */
type PipeFds = { env: number; filter: number };

export const bwrapBackend: Backend = {
  level: 'bwrap',
  async open(log) {
    const bwrap = findProgram('bwrap');
    if (bwrap === undefined) return { why: 'bubblewrap is not installed' };
    if (!hasFilter()) return { why: `there is no filter of system calls for ${process.arch}` };
    const [prlimit, setpriv] = [findProgram('prlimit'), findProgram('setpriv')];
    const tools = { bwrap, prlimit, setpriv, log };
    if (prlimit === undefined) log.warn('no prlimit: jails run without resource limits');
    const isRoot = process.getuid?.() === 0;
    const stagings: Staging[] = isRoot && setpriv ? ['staged', 'direct'] : ['direct'];
    let why = '';
    for (const staging of stagings) {
      const jail = openBwrap(tools, staging);
      const failure = await probeJail(jail, {
        program: process.execPath,
        path: '/bin/node',
        argv: () => ['/bin/node', '--version'],
        timeoutMs: PROBE_TIMEOUT_MS,
      });
      if (failure === undefined) {
        log.info({ way: staging, ownUid: isRoot }, 'sandbox is bwrap');
        return jail;
      }
      why = failure;
    }
    return { why };
  },
};

function openBwrap(tools: Tools, staging: Staging): Jail {
  return {
    level: 'bwrap',
    hasOwnNetwork: true,
    hasUnixSockets: true,
    launch(spec) {
      const { stdio, group } = spec;
      const owner = uidFor(spec);
      const limits = limitArgv(tools.prlimit, spec.limits, owner !== undefined);
      const isStaged = staging === 'staged' && owner !== undefined;
      const fds = { env: stdio.length, filter: stdio.length + 1 };
      const filter = seccompFilter(profileOf(spec, false));
      const { child, exited } = start({
        argv: isStaged
          ? [...limits, ...stagedArgv(tools, spec, { uid: owner.uid, fds })]
          : [...limits, tools.bwrap, ...bwrapArgv(spec, fds)],
        env: {},
        stdio: [...stdio, 'pipe', 'pipe'],
        cwd: '/',
        group,
        uid: isStaged ? undefined : owner?.uid,
      });
      writeTo(child.stdio[fds.env], envWords(spec));
      writeTo(child.stdio[fds.filter], filter);
      return {
        child,
        exited: exited.finally(() => owner?.[Symbol.dispose]()),
        // when bwrap dies the kernel ends the jail's pid 1, and with it the jail. But bwrap sets
        // that up last, and processes started before survived (seen): they are in bwrap's group
        kill() {
          // the pid may be reused once it is gone
          if (child.exitCode === null && child.signalCode === null) killGroup(child.pid, tools.log);
        },
      };
    },
  };
}

/** Arguments of the outer bwrap, of setpriv, and of the inner bwrap, which mounts the stage. */
function stagedArgv(
  tools: Tools,
  spec: JailSpec,
  { uid, fds }: { uid: number; fds: PipeFds },
): string[] {
  const staged = spec.mounts.map((mount, index) => ({ ...mount, to: `${STAGE}/${index}` }));
  const mounts = spec.mounts.map((mount, index) => ({ ...mount, from: `${STAGE}/${index}` }));
  return [
    ...[tools.bwrap, '--dev-bind', '/', '/', '--tmpfs', STAGE, ...staged.flatMap(bind)],
    ...[...OUTER_END, String(tools.setpriv)],
    ...[`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--', tools.bwrap],
    ...bwrapArgv({ ...spec, mounts }, fds),
  ];
}

/** The arguments after `bwrap`. */
function bwrapArgv(spec: JailSpec, fds: PipeFds): string[] {
  return [
    ...['--unshare-user', '--unshare-ipc', '--unshare-pid', '--unshare-uts', '--unshare-net'],
    ...['--unshare-cgroup-try', '--hostname', 'jail', '--uid', INSIDE_UID, '--gid', INSIDE_UID],
    ...['--cap-drop', 'ALL', '--die-with-parent', '--new-session'],
    ...(spec.nestedNamespaces ? [] : ['--disable-userns']),
    // without a reaper the process is pid 1, which cannot kill or stop itself
    ...(spec.hasChildren === true || spec.nestedNamespaces ? [] : ['--as-pid-1']),
    ...['--proc', '/proc', '--dev', '/dev', '--size', String(spec.tmpBytes), '--tmpfs', '/dev/shm'],
    ...['--remount-ro', '/dev', '--size', String(spec.tmpBytes), '--tmpfs', '/tmp'],
    ...spec.mounts.flatMap(bind),
    ...['--remount-ro', '/', '--chdir', spec.cwd ?? '/', '--clearenv'],
    ...['--args', String(fds.env), '--seccomp', String(fds.filter), '--'],
    ...spec.argv(INSIDE),
  ];
}

function bind({ from, to, writable }: Mount): string[] {
  return [writable === true ? '--bind' : '--ro-bind', from, to];
}

/**
 * The environment is passed by a pipe, as arguments for bwrap: its argv is visible to every user of
 * this machine, and an operator's proxy may have a password.
 */
function envWords(spec: JailSpec): string {
  const words = Object.entries(spec.env(INSIDE)).flatMap((pair) => ['--setenv', ...pair]);
  return words.map((word) => `${word}\0`).join('');
}

function writeTo(pipe: unknown, words: string | Buffer): void {
  const stream = pipe as Writable | undefined;
  stream?.on('error', () => {}); // bwrap ended before it read: its exit code reports that
  stream?.end(words);
}

/** Whether a jailed process can create namespaces, as Chrome's sandbox does. Checked at start. */
export async function canNest(jail: Jail, log: Log): Promise<boolean> {
  const unshare = findProgram('unshare');
  // Chrome's sandbox does not run as root; in a jail the process is not root
  if (jail.level === 'none' && process.getuid?.() === 0) return false;
  if (jail.level === 'landlock') return false; // this backend is for machines without namespaces
  if (unshare === undefined) return true; // Chrome itself reports it
  const nested = ['--user', '--map-root-user', '--pid', '--net', '--fork'];
  // without a limit: a machine that is slow at its start would lose Chrome's sandbox
  const refusal = await probeJail(jail, {
    program: unshare,
    path: '/bin/unshare',
    argv: (at) => [at('/bin/unshare'), ...nested, at('/bin/unshare'), '--version'],
    nestedNamespaces: true,
  });
  if (refusal === undefined) return true;
  log.warn('no nested user namespaces: Chrome runs without its own sandbox');
  return false;
}
