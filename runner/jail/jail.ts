/** Types of a jail: its mounts, its limits, and its process. */
import type { ChildProcess, StdioOptions } from 'node:child_process';
import type { Log } from '../../proto/common/log.ts';
import type { JailLimits } from './prlimit.ts';

export type Mount = {
  /** A path on this machine. */
  from: string;
  /** The path in the jail. */
  to: string;
  writable?: boolean;
};

/** Returns the path at which the jailed process finds `inside`. */
export type At = (inside: string) => string;

export type JailSpec = {
  argv: (at: At) => string[];
  /**
   * In order: a later mount may lie inside an earlier one. The jail's uid becomes the owner of
   * writable ones (chown), unless the spec has a uid.
   */
  mounts: readonly Mount[];
  /** The whole environment. */
  env: (at: At) => Record<string, string>;
  /** The working directory, inside the jail; / when absent. */
  cwd?: string;
  /** Of /tmp, and again of /dev/shm. */
  tmpBytes: number;
  limits: JailLimits;
  stdio: Exclude<StdioOptions, string>;
  /** Whether it may create user namespaces: only Chrome's sandbox needs them. */
  nestedNamespaces: boolean;
  /** Its children may be orphaned, so pid 1 of the jail is a reaper instead of the process. */
  hasChildren?: boolean;
  /**
   * It may set modes and times of files. Landlock does not restrict that, so under Landlock this
   * includes other files of the same user: only for programs that run no code of a tenant.
   */
  setsModes?: boolean;
  /** Loopback ports of the machine: with Landlock it may connect to these only. */
  ports?: readonly number[];
  /**
   * Its uid under a root runner, for jails that share files: leased by the caller, which has
   * chowned the writable mounts. Absent: a uid of its own, which becomes the owner of these.
   */
  uid?: number | undefined;
  /** The open cgroup.procs of a cgroup to join at start. Set by memory-limit.ts. */
  group?: number | undefined;
};

export type Exit = { code: number | null; signal: NodeJS.Signals | null };

export type Jailed = {
  child: ChildProcess;
  /** Settles when the process is gone; never rejects (a program that cannot start exits 127). */
  exited: Promise<Exit>;
  /** Sends SIGKILL to the whole tree; no effect when it is gone. */
  kill(): void;
  /** The exceeded limit that ended it, such as `it used more than 256 MiB of memory`. */
  exitReason?(): string | undefined;
  /** Used by the whole tree a few seconds ago; undefined where nothing watches it. */
  memoryBytes?(): number | undefined;
};

export type Jail = {
  level: 'bwrap' | 'landlock' | 'none';
  /** Whether each jail has a network namespace of its own without a route. */
  hasOwnNetwork: boolean;
  /** Whether mounted unix sockets work. Otherwise: one of `ports`, or an inherited descriptor. */
  hasUnixSockets: boolean;
  launch(spec: JailSpec): Jailed;
};

/** No backend works here. The message tells the operator what to do. */
export class JailError extends Error {
  override readonly name = 'JailError';
}

/** One way to sandbox a process: opens the jail, or returns why it does not work here. */
export type Backend = {
  level: Jail['level'];
  open(log: Log, tmpDir: string): Promise<Jail | { why: string }>;
};
