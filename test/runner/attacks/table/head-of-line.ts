/**
 * What keeps a process of the service busy, and so others waiting. Each is run on the whole
 * service, beside a second tenant whose round trips stay below a second and whose session stays
 * RUNNING: test/faults/head-of-line.test.ts.
 */
import { type Attack, harmless, harmlessIn } from '../lab/attack.ts';

export const headOfLine = [
  { name: 'every flood above, beside a session of another project', ...harmlessIn('landlock') },
  { name: 'every bomb above, beside a session of another project', ...harmless },
  { name: 'a CDP command of 14 MB with a million members', ...harmlessIn('landlock') },
  { name: 'a CDP command of 14 MB that is nested, and no JSON', ...harmless },
  { name: 'a flood of 100,000 CDP commands whose answers are not read', ...harmless },
  { name: 'a result of 5 MiB of small members, read ten times', ...harmlessIn('deno') },
  { name: 'a build whose package.json has 24 MiB of members', ...harmless },
  { name: 'proxies whose patterns count to a thousand, again and again', ...harmless },
] as const satisfies readonly Attack[];
