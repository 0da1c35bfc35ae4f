/** What a jail is: what it shows, what it limits, and what runs in it. */
import type { ChildProcess, StdioOptions } from 'node:child_process';
import type { Log } from '../../proto/common/log.ts';
import type { JailLimits } from './prlimit.ts';

export type Mount = {
  /** A path of this machine. */
  from: string;
  /** Where the jailed process finds it. */
  to: string;
  writable?: boolean;
};

/** Gives the path under which the jailed process finds what the spec calls `inside`. */
export type At = (inside: string) => string;

export type JailSpec = {
  argv: (at: At) => string[];
  /**
   * In order: a later one may lie inside an earlier one. Writable ones become the jail's own
   * (chown), unless the spec has a uid.
   */
  mounts: Mount[];
  /** The whole environment. */
  env: (at: At) => Record<string, string>;
  /** Where it starts, as it sees it: / when absent. */
  cwd?: string;
  /** Of /tmp, and again of /dev/shm. */
  tmpBytes: number;
  limits: JailLimits;
  stdio: StdioOptions;
  /**
   * Whether it may make user namespaces of its own: Chrome's sandbox needs them, nothing else does.
   */
  nestedNamespaces: boolean;
  /**
   * It has children that may be orphaned: pid 1 of the jail is a reaper then. Else the process
   * itself is pid 1.
   */
  hasChildren?: boolean;
  /**
   * It sets modes and times of files. Landlock does not judge that, so there it may do so to
   * others' files of its user: only for what runs no code of a tenant.
   */
  setsModes?: boolean;
  /** Of the machine's loopback: it may connect to these alone, where there is Landlock. */
  ports?: readonly number[];
  /**
   * Its uid under a root runner, for jails that share files: leased by the caller, which has
   * chowned the writable mounts to it. Absent: a uid of its own, and the writable mounts become its
   * own.
   */
  uid?: number | undefined;
  /** A cgroup to be in from the start: its open cgroup.procs. Of memory-limit.ts. */
  group?: number;
};

export type Exit = { code: number | null; signal: NodeJS.Signals | null };

export type Jailed = {
  child: ChildProcess;
  /**
   * Settles once, when the process is gone; never rejects (a program that cannot start exits 127).
   */
  exited: Promise<Exit>;
  /** SIGKILL to the whole tree; harmless when it is gone. */
  kill(): void;
  /** The limit that it was ended for, as `it used more than 256 MiB of memory`. */
  exitReason?(): string | undefined;
};

export type Jail = {
  level: 'bwrap' | 'landlock' | 'none';
  /** Whether each jail has a network of its own without a way out. */
  hasOwnNetwork: boolean;
  /**
   * Whether sockets that are mounted can be used. Else what it shall reach is a port of `ports`, or
   * a descriptor that it inherits.
   */
  hasUnixSockets: boolean;
  launch(spec: JailSpec): Jailed;
};

/** No rung works here. Its message tells the operator what to do. */
export class JailError extends Error {
  override readonly name = 'JailError';
}

/** One way to contain a process: the jail, or why it does not work on this machine. */
export type Backend = {
  level: Jail['level'];
  open(log: Log, tmpDir: string): Promise<Jail | { why: string }>;
};
