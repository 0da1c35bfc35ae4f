/**
 * Requests with a valid key for the objects of another project. Each runs over the REST interface:
 * test/gateway/tenants/attacks.test.ts.
 */
import { type Attack, refused } from '../lab/attack.ts';

const overRest = {
  ending: refused,
  landlock: { type: 'unrun' },
  deno: { type: 'unrun' },
} as const satisfies Partial<Attack>;

export const otherProjects = [
  { name: "read, rename or delete another project's labels", ...overRest },
  { name: "find another project's sessions by a label, or give them one", ...overRest },
  { name: "take a label's name from another project, or learn that it has it", ...overRest },
  { name: "read or delete another project's certificates", ...overRest },
  { name: "have a session or a function trust another project's certificate", ...overRest },
  { name: "read, change or delete another project's secrets", ...overRest },
  { name: "attach or detach another project's secret, or see what its function has", ...overRest },
  {
    name: "have another project's key pair or secret open with a function of its own",
    ...overRest,
  },
  { name: "take a secret's name from another project, or learn that it has it", ...overRest },
] as const satisfies readonly Attack[];
