/** A log line as the contract has it. */
import type { LogLine } from '../../proto/gen/tabern/v1/functions.pb.ts';
import type { LogLineRow } from '../store/types/leases.ts';

export function logToProto({ message, at, level }: LogLineRow): LogLine {
  return { message, timestamp: at, level };
}
