/**
 * Messages between the sender thread and the main thread. The thread requests claims and reports
 * results; it has no token, no database and no secret.
 */
import type { BlockList } from 'node:net';
import type { AttemptReport, Claim } from '../../proto/gen/tabern/v1/deliveries.pb.ts';
import type { Budget } from './attempt.ts';

/** Start data of the thread: all of its configuration. */
export type ThreadOptions = {
  /** Allowed addresses in addition to public ones. */
  allow: BlockList;
  /** PEM text: certificate authorities in addition to the system's. */
  ca?: string | undefined;
  budget?: Budget | undefined;
  /** DNS servers instead of the system's, as `address:port`. For tests. */
  dnsServers?: readonly string[] | undefined;
};

/** Result of a claim: deliveries to send, and webhooks that were deleted meanwhile. */
export type Claimed = { claims: Claim[]; goneWebhookIds: string[] };

/** `id` numbers the requests of a thread and correlates the answers. */
export type FromThread =
  | { kind: 'claim'; id: number; max: number }
  /** Also claims up to `max` due deliveries. */
  | { kind: 'report'; id: number; reports: AttemptReport[]; max: number }
  /** The claim is cancelled. */
  | { kind: 'leave'; id: number }
  /** These reports were dropped after core had not accepted a report for too long. */
  | { kind: 'dropped'; count: number };

export type ToThread =
  | { kind: 'claimed'; id: number; claimed: Claimed }
  | { kind: 'failed'; id: number }
  /** Deadline of attempts in flight. */
  | { kind: 'close'; maxMs: number };
