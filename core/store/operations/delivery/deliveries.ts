/** The operations of deliveries over an engine's statements. */
import type { DeliveryOps, RedeliveryOps } from '../../types/deliveries.ts';
import type { InSteps, Transaction } from '../steps.ts';
import { heartbeatOperations, type ReportStatements, recordReports } from './attempts.ts';
import { type ClaimStatements, claimDeliveries } from './claims.ts';
import { type RedeliveryStatements, redeliveryOperations } from './redeliveries.ts';

/** What an engine brings. */
export type DeliveryStatements = {
  claims: ClaimStatements;
  reports: ReportStatements;
  redeliveries: RedeliveryStatements;
};

export function deliveryOperations(
  { claims, reports, redeliveries }: DeliveryStatements,
  tx: Transaction,
): InSteps<DeliveryOps & RedeliveryOps> {
  return {
    ...heartbeatOperations(reports),
    ...redeliveryOperations(redeliveries, tx),
    claimDeliveries: (wanted) => claimDeliveries(claims, tx, wanted),
    *reportAttempts({ next, ...report }) {
      const disabled = yield* recordReports(reports, tx, report);
      return { disabled, claimed: next && (yield* claimDeliveries(claims, tx, next)) };
    },
  };
}
