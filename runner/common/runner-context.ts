/** The runner's context, for every piece of work. */
import type { Log } from '../../proto/common/log.ts';
import type { CallOptions } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';

export type RunnerContext = {
  identity: { runnerId: string; instanceId: string };
  clients: Pick<Clients, 'blobs' | 'runners'>;
  /** Carries the runner's token. */
  call: CallOptions;
  /** The directory of this instance; removed when the runner ends. */
  runDir: string;
  log: Log;
  /** In milliseconds since 1970. */
  now: () => number;
  /** Aborts when the runner leases no more work; its work continues. */
  draining: AbortSignal;
  /** Aborts when its sessions end. */
  ending: AbortSignal;
  /** Aborts when the runner has no time left. */
  stopped: AbortSignal;
};
