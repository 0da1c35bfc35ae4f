/**
 * What the sender's thread and the main thread say to each other: plain messages, and no others.
 * The thread asks for claims and hands in reports; it knows no token, no database and no secret.
 */
import type { BlockList } from 'node:net';
import type { AttemptReport, Claim } from '../../proto/gen/tabern/v1/deliveries.pb.ts';
import type { Budget } from './attempt.ts';

/** What the thread is started with: all that it knows of its surroundings. */
export type ThreadOptions = {
  /** Addresses that are allowed beside the public ones. */
  allow: BlockList;
  /** PEM text: certificates trusted beside the system's. */
  ca?: string | undefined;
  budget?: Budget | undefined;
  /** DNS servers instead of the system's, as `address:port`. For tests. */
  dnsServers?: readonly string[] | undefined;
};

/** What a claim brought: deliveries to send, and webhooks that were deleted meanwhile. */
export type Claimed = { claims: Claim[]; goneWebhookIds: string[] };

/** `id` numbers the questions of one thread, so that each answer finds who asked. */
export type FromThread =
  | { kind: 'claim'; id: number; max: number }
  /** And takes as many as `max` that are due. */
  | { kind: 'report'; id: number; reports: AttemptReport[]; max: number }
  /** A claim is not waited for any longer. */
  | { kind: 'leave'; id: number }
  /** Core took no report for so long that these were given up. */
  | { kind: 'dropped'; count: number }
  | { kind: 'closed' };

export type ToThread =
  | { kind: 'claimed'; id: number; claimed: Claimed }
  | { kind: 'failed'; id: number }
  /** Attempts in flight get this long. */
  | { kind: 'close'; maxMs: number };
