/**
 * Input that keeps a process of the service busy, and so others waiting. Each runs on the whole
 * service, with a second tenant whose round trips stay below a second and whose session stays
 * RUNNING: test/faults/head-of-line.test.ts.
 */
import { type Attack, harmless, harmlessIn } from '../lab/attack.ts';

export const headOfLine = [
  {
    name: 'every flood above, with a concurrent session of another project',
    ...harmlessIn('landlock'),
  },
  { name: 'every bomb above, with a concurrent session of another project', ...harmless },
  { name: 'a CDP command of 14 MB with a million members', ...harmlessIn('landlock') },
  { name: 'a CDP command of 14 MB of nested, invalid JSON', ...harmless },
  { name: 'a flood of 100,000 CDP commands with unread responses', ...harmless },
  { name: 'lost connections of a page that talks, resumed without acknowledgements', ...harmless },
  { name: 'a result of 5 MiB of small members, read ten times', ...harmlessIn('deno') },
  { name: 'a build whose package.json has 24 MiB of members', ...harmless },
  { name: 'proxy patterns with repeats of a thousand, repeatedly', ...harmless },
] as const satisfies readonly Attack[];
