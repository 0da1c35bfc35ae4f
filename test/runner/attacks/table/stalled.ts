/**
 * A runner that neither works nor dies, whatever made it so. Each is run on the whole service:
 * test/faults/stalled-runner.test.ts.
 */
import { type Attack, harmless, harmlessIn } from '../lab/attack.ts';

export const stalled = [
  { name: 'its main thread blocks for longer than a lease', ...harmlessIn('landlock', 'deno') },
  { name: 'its main thread blocks for good', ...harmless },
  {
    name: 'it is stopped and continued, when its leases have expired',
    ...harmlessIn('landlock'),
  },
] as const satisfies readonly Attack[];
