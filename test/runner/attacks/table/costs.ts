/**
 * The worst input of each limit in bytes, with a bound of CPU time for the process that reads it.
 * Run by input-cost.test.ts and upload-cost.test.ts of test/gateway, by grpc-cost.test.ts and
 * manifest-cost.test.ts of test/core, and by host-frames.test.ts and chrome/cost.test.ts of
 * test/runner.
 */
import { type Attack, harmless } from '../lab/attack.ts';

export const inputCosts = [
  { name: 'a body of 1 MiB of members, levels or items, to each route', ...harmless },
  { name: 'a query and headers of the largest size', ...harmless },
  { name: 'a form of many parts, of many headers, of many boundaries', ...harmless },
  { name: 'a message of 13 MiB of many members over gRPC', ...harmless },
  { name: 'manifests of 64 KiB with the most members or levels', ...harmless },
  { name: 'frames of log lines with the most lines, levels and members', ...harmless },
  { name: 'a CDP command of 16 MiB, in each form that is expensive to read', ...harmless },
] as const satisfies readonly Attack[];
