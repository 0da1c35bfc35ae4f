/** The operations of deliveries over an engine's statements. */
import type { DeliveryOps } from '../../types/deliveries.ts';
import type { InSteps, Transaction } from '../steps.ts';
import { heartbeatOperations, type ReportStatements, recordReports } from './attempts.ts';
import { type ClaimStatements, claimDeliveries } from './claims.ts';

/** What an engine brings. */
export type DeliveryStatements = { claims: ClaimStatements; reports: ReportStatements };

export function deliveryOperations(
  { claims, reports }: DeliveryStatements,
  tx: Transaction,
): InSteps<DeliveryOps> {
  return {
    ...heartbeatOperations(reports),
    claimDeliveries: (wanted) => claimDeliveries(claims, tx, wanted),
    *reportAttempts({ next, ...report }) {
      const disabled = yield* recordReports(reports, tx, report);
      return { disabled, claimed: next && (yield* claimDeliveries(claims, tx, next)) };
    },
  };
}
