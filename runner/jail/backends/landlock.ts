/**
 * The Landlock backend, for machines that allow no namespaces: the process sees the machine's paths
 * and network, and the kernel denies it all except the listed mounts, a directory of its own as
 * /tmp, and TCP to the listed loopback ports. The seccomp filter covers what Landlock does not
 * (unix sockets, UDP, modes of files). Needs Landlock's ABI 6 (Linux 6.12): older ones do not
 * restrict signals, or TCP.
 */
import { execFile } from 'node:child_process';
import { existsSync, lstatSync } from 'node:fs';
import { promisify } from 'node:util';
import type { Log } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import type { Backend, Jail, JailSpec, Mount } from '../jail.ts';
import { findProgram, limitArgv } from '../prlimit.ts';
import { chownTree } from '../spawn.ts';
import { uidFor } from '../uids.ts';
import { LAUNCHER } from './landlock-launcher.ts';
import { launchUnmounted } from './none.ts';
import { PROBE_TIMEOUT_MS, probeJail } from './probe.ts';
import { hasFilter, profileOf, seccompFilter } from './seccomp.ts';
import { numberOf } from './syscalls.ts';

/** 4 restricts TCP, 5 ioctl on devices, 6 signals and abstract sockets (Chrome signals its own). */
const ABI_MIN = 6;

/** LANDLOCK_ACCESS_FS_*. */
const EXECUTE = 1;
const WRITE_FILE = 2;
const READ_FILE = 4;
const READ_DIR = 8;
const MAKE_CHAR = 64;
const MAKE_BLOCK = 2048;
const TRUNCATE = 1 << 14;
const IOCTL_DEV = 1 << 15;
const EVERY_RIGHT = (1 << 16) - 1;
const OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE;
const READ = EXECUTE | READ_FILE | READ_DIR;
/** A jail creates no devices, and executes nothing that it has written. */
const WRITE = EVERY_RIGHT & ~(MAKE_CHAR | MAKE_BLOCK | EXECUTE | IOCTL_DEV);
/** LANDLOCK_ACCESS_NET_BIND_TCP and CONNECT_TCP; LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET and SIGNAL. */
const NETWORK = 3;
const SCOPES = 3;
/** Used by every program; none stores or reveals anything. */
const DEVICES = [
  { from: '/dev/null', rights: READ_FILE | WRITE_FILE },
  { from: '/dev/zero', rights: READ_FILE },
  { from: '/dev/urandom', rights: READ_FILE },
  { from: '/dev/random', rights: READ_FILE },
];
/** Chrome reads about its own processes, and does not start where it cannot. */
const OF_CHROME = { from: '/proc', rights: READ_FILE | READ_DIR };
/** In the order of the launcher's arguments. */
const LAUNCHER_CALLS = ['capset', 'setgroups', 'setresgid', 'setresuid'] as const;
/** Not in our table: no filter uses them. */
const PRCTL = { x64: 157, arm64: 167 };
const SECCOMP = { x64: 317, arm64: 277 };

type Tools = { perl: string; prlimit: string | undefined; tmpDir: string; log: Log };

export const landlockBackend: Backend = {
  level: 'landlock',
  async open(log, tmpDir) {
    const perl = findProgram('perl');
    if (perl === undefined) return { why: 'Perl is not installed' };
    if (!hasFilter()) return { why: `there is no filter of system calls for ${process.arch}` };
    const abi = await abiOf(perl);
    if (abi < ABI_MIN) return { why: `the kernel's Landlock is too old (${abi} of ${ABI_MIN})` };
    const jail = openLandlock({ perl, prlimit: findProgram('prlimit'), tmpDir, log });
    const why = await probeJail(jail, {
      program: process.execPath,
      path: '/bin/node',
      argv: (at) => [at('/bin/node'), '-e', PROBE],
      timeoutMs: PROBE_TIMEOUT_MS,
    });
    if (why !== undefined) return { why };
    log.info({ abi, ownUid: process.getuid?.() === 0 }, 'sandbox is landlock');
    return jail;
  },
};

function openLandlock(tools: Tools): Jail {
  return {
    level: 'landlock',
    hasOwnNetwork: false,
    hasUnixSockets: false,
    launch(spec) {
      const owner = uidFor(spec);
      const jailed = launchUnmounted(
        // Node does not start with OpenSSL settings that it may not read
        { ...spec, env: (at) => ({ OPENSSL_CONF: '/dev/null', ...spec.env(at) }) },
        {
          ...tools,
          command(mounts, tmp) {
            if (owner) chownTree(owner.uid, tmp);
            return [
              ...limitArgv(tools.prlimit, spec.limits, owner !== undefined),
              ...[tools.perl, '-e', LAUNCHER, '--'],
              ...rulesOf({ ...spec, mounts }, owner?.uid ?? -1),
              '--',
            ];
          },
        },
      );
      return { ...jailed, exited: jailed.exited.finally(() => owner?.[Symbol.dispose]()) };
    },
  };
}

/** The launcher's arguments before the command. */
function rulesOf(spec: JailSpec, uid: number): string[] {
  const architecture = process.arch === 'arm64' ? 'arm64' : 'x64';
  const numbers = [
    ...[PRCTL[architecture], SECCOMP[architecture]],
    ...LAUNCHER_CALLS.map((name) => must(numberOf(name, architecture), name)),
    ...[EVERY_RIGHT, NETWORK, SCOPES, uid],
  ];
  const rules = [
    ...spec.mounts.map((mount) => ({ from: mount.from, rights: rightsOf(mount) })),
    ...DEVICES.filter(({ from }) => existsSync(from)),
    ...(spec.nestedNamespaces ? [OF_CHROME] : []),
  ];
  return [
    numbers.join(' '),
    seccompFilter(profileOf(spec, true)).toString('hex'),
    ...rules.map(({ from, rights }) => `${rights} ${from}`),
    ...(spec.ports ?? []).map((port) => `port ${port}`),
  ];
}

function rightsOf({ from, writable }: Mount): number {
  const rights = writable === true ? READ | WRITE : READ;
  return lstatSync(from).isDirectory() ? rights : rights & OF_FILES;
}

/** 0 where the kernel has no Landlock, or it is disabled. */
async function abiOf(perl: string): Promise<number> {
  const script = 'my $abi = syscall 444, 0, 0, 1; print $abi < 0 ? 0 : $abi';
  const options = { env: {}, timeout: PROBE_TIMEOUT_MS };
  const { stdout } = await promisify(execFile)(perl, ['-e', script], options);
  return Number(stdout);
}

/** Tries a forbidden read; exits 9 when it was allowed. */
const PROBE = `try { require('fs').readFileSync('/etc/passwd'); process.exit(9); }
  catch (error) { process.exit(error.code === 'EACCES' ? 0 : 8); }`;
