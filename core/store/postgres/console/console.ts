/** What the console reads, in PostgreSQL. */
import type { ConsoleOps } from '../../types/console.ts';
import type { ConsoleDataOps } from '../../types/console-data.ts';
import type { InReads } from '../engine/steps.ts';
import type { Tx } from '../engine/transaction.ts';
import { consoleBuildOps } from './builds.ts';
import { consoleChangeOps, type Watches } from './changes.ts';
import { consoleCountOps } from './counts.ts';
import { consoleDeliveryOps } from './deliveries.ts';
import { consoleFunctionOps } from './functions.ts';
import { consoleInvocationOps } from './invocations.ts';
import { consoleLogOps } from './logs.ts';
import { consoleOverviewOps } from './overview.ts';
import { consoleSearchOps } from './search.ts';
import { consoleEventOps } from './session-events.ts';
import { consoleSessionOps } from './sessions.ts';
import { consoleStoredOps } from './stored.ts';
import { consoleUsageOps } from './usage.ts';
import { consoleWebhookOps } from './webhooks.ts';

export function consoleOps(tx: Tx, watches: Watches): InReads<ConsoleOps & ConsoleDataOps> {
  return {
    ...consoleSessionOps(tx),
    ...consoleInvocationOps(tx),
    ...consoleBuildOps(tx),
    ...consoleFunctionOps(tx),
    ...consoleLogOps(tx),
    ...consoleDeliveryOps(tx),
    ...consoleWebhookOps(tx),
    ...consoleOverviewOps(tx),
    ...consoleCountOps(tx),
    ...consoleEventOps(tx),
    ...consoleSearchOps(tx),
    ...consoleChangeOps(tx, watches),
    ...consoleStoredOps(tx),
    ...consoleUsageOps(tx),
  };
}
