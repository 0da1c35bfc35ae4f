/** What the steps of one build share. */
import type { Env } from '../../proto/common/env.ts';
import type { BuildWork } from '../../proto/gen/tabern/v1/runners.pb.ts';
import type { RunnerContext } from '../common/runner-context.ts';
import type { Hosts } from '../functions/hosts.ts';
import type { Jail } from '../jail/jail.ts';
import type { Lease } from '../leases/lease.ts';
import type { Place } from './build-directory.ts';
import type { Installed } from './install/cache.ts';
import type { BuildLog } from './log.ts';

export type BuildDeps = {
  runner: RunnerContext;
  hosts: Pick<Hosts, 'introspect'>;
  jail: Jail;
  installed: Installed;
  /** The operator's environment: PATH, and npm's settings as npm_config_*. */
  env: Env;
};

export type Build = {
  work: BuildWork;
  lease: Lease;
  deps: BuildDeps;
  lines: BuildLog;
  /** Aborts at the build's time limit, when the lease is lost, or when the runner stops. */
  signal: AbortSignal;
};

/** A build that has its directory. */
export type Step = Build & { place: Place };
