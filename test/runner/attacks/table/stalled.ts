/**
 * A runner that neither works nor ends, for any cause. Each runs on the whole service:
 * test/faults/stalled-runner.test.ts.
 */
import { type Attack, harmless, harmlessIn } from '../lab/attack.ts';

export const stalled = [
  {
    name: "the runner's main thread blocks for longer than a lease",
    ...harmlessIn('landlock', 'deno'),
  },
  { name: "the runner's main thread blocks for ever", ...harmless },
  {
    name: 'the runner is stopped, and continued after its leases have expired',
    ...harmlessIn('landlock'),
  },
] as const satisfies readonly Attack[];
