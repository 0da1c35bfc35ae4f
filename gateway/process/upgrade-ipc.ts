/**
 * IPC between the first process of a service and the newer ones that it has started:
 *   checking -> able -> (port received) -> taking over -> serving -> giving up -> retired
 * A service that gave up serves again when the next one cannot take over.
 */

/** A listening socket, as Node passes it between processes. Node has no public type for it. */
export type Port = object;

/** Names the process that starts a successor. Not a setting: set for one process. */
export const SUCCEEDS = 'SUCCEEDS_PID';

/** The command that `tabern upgrade` was run with, without its words. */
export type Program = { command: readonly string[]; npm?: string | undefined };

export type ToSuccessor =
  /** Sent with the port, which the successor returns: the sender's copy closes with its server. */
  | { type: 'port' }
  | { type: 'take-over' }
  /** Stop accepting, and close core. */
  | { type: 'give-up' }
  /** The next one could not take over; sent with the port. */
  | { type: 'resume' }
  /** The next one serves: end when the sessions have ended. */
  | { type: 'retire' }
  /** Accept no new work, and end with the sessions. */
  | { type: 'drain' }
  /** Do not wait for the sessions. */
  | { type: 'end' }
  /** No earlier process has work. */
  | { type: 'alone' }
  | ({ type: 'upgraded' } & Upgraded);

export type FromSuccessor =
  | { type: 'able'; version: string; dataDir: string }
  /** Sent with the port. */
  | { type: 'port' }
  | { type: 'serving' }
  | { type: 'given-up' }
  | { type: 'failed'; why: string }
  | { type: 'upgrade'; program: Program }
  /** Earlier processes have no time left. */
  | { type: 'ending' };

/** `says`: the result, or what goes on and why. */
export type Upgraded = { isDone: boolean; says: string };

export function notUpgraded(why: string): Upgraded {
  return { isDone: false, says: `the running program goes on: ${why}` };
}

/** What serves: this process, or one that it has started. */
export type Holder = {
  /** Settles when it accepts no connections and core is closed. */
  giveUp(): Promise<void>;
  resume(port: Port): Promise<void>;
  retire(): void;
};
