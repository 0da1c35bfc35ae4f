/** The fault figures of the page: counts as the tests have them, read from their sources. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { KINDS } from '../../runner/attacks/table/all.ts';

const TEST = join(import.meta.dirname, '../..');
const INTERLEAVED = 'core/store/postgres/interleavings.test.ts';

export type Fault = { what: string; count: string; fails: string; command: string };

/** `n` in `npm test`, `N` in a whole run. Throws for a constant that the file does not have. */
export function sizesIn(path: string, name: string): string {
  const source = readFileSync(join(TEST, path), 'utf8');
  const pattern = new RegExp(
    `^const ${name} = (?:.*sized\\(([\\d_]+), ([\\d_]+)\\)|(?:.* \\?\\? ')?([\\d_]+)\\b.*;)`,
    'm',
  );
  const [, few, whole, one] = pattern.exec(source) ?? [];
  if (one !== undefined) return counted(one);
  if (few === undefined || whole === undefined) throw new Error(`${path} has no ${name}`);
  return `${counted(few)}; ${counted(whole)} in a whole run`;
}

/** How many rows of a table `const NAME: ... = [` in that file. */
export function rowsIn(path: string, name: string): number {
  const source = readFileSync(join(TEST, path), 'utf8');
  const [, body] =
    new RegExp(`^const ${name}\\b[^=]*= \\[\\n([\\s\\S]*?)^\\];`, 'm').exec(source) ?? [];
  if (body === undefined) throw new Error(`${path} has no ${name}`);
  return (body.match(/^ {2}\[/gm) ?? []).length;
}

/** Of a whole run and of `npm test`. */
export function faults(): Fault[] {
  return [...kills(), ...badRequests(), ...others()];
}

function kills(): Fault[] {
  const acknowledged = sizesIn('faults/power.test.ts', 'ACKNOWLEDGED_MIN');
  return [
    {
      what: '`kill -9` of the service and of the runner in turn, at random moments under load',
      count: sizesIn('faults/kill.test.ts', 'ROUNDS'),
      fails:
        'an acknowledged invocation is lost, ends twice or is not delivered; a process is left',
      command: whole('test/faults/kill.test.ts'),
    },
    {
      what:
        '`kill -9` of a core and of a runner, roles apart over mTLS; then a leader that stands ' +
        'still, and `kill -9` of PostgreSQL',
      count: `${sizesIn('faults/machines/kills.test.ts', 'KILLS')}, of each; of a core at least 2`,
      fails: 'one of the same, a handler runs twice, or a killed core ends a session',
      command: `TABERN_TEST_KILLS=50 ${whole('test/faults/machines/kills.test.ts')}`,
    },
    {
      what: 'cuts of power, on a block device that drops what was not synced; needs root',
      count: sizesIn('faults/power.test.ts', 'ROUNDS'),
      fails: `one of ${acknowledged} or more acknowledged invocations is lost, or its event`,
      command: whole('test/faults/power.test.ts'),
    },
  ];
}

function badRequests(): Fault[] {
  const wire = 'gateway/fuzz/wire.test.ts';
  const slow = ['HEADERS', 'BODIES'].map((name) => sizesIn('gateway/fuzz/slow.test.ts', name));
  return [
    {
      what: 'random requests for each operation of `/openapi.json`',
      count: sizesIn('gateway/fuzz/rest.test.ts', 'COUNT'),
      fails: 'an answer is not as described; a good request beside them fails; memory grows',
      command: whole('test/gateway/fuzz/rest.test.ts'),
    },
    {
      what: 'malformed HTTP requests',
      count: String(rowsIn(wire, 'WIRES')),
      fails: 'one has another answer than expected, or two',
      command: whole(`test/${wire}`),
    },
    {
      what: 'random bytes as HTTP requests',
      count: sizesIn(wire, 'RAW_COUNT'),
      fails: 'an answer is 500 or above, or the service ends',
      command: whole(`test/${wire}`),
    },
    {
      what: 'JSON bodies made to break a parser',
      count: String(rowsIn(wire, 'JSONS')),
      fails: 'one has another status than expected',
      command: whole(`test/${wire}`),
    },
    {
      what: 'sockets that send a header, and a body, a byte a second',
      count: slow.join(' and '),
      fails: 'one is open after its deadline, or a good request beside them fails',
      command: whole('test/gateway/fuzz/slow.test.ts'),
    },
  ];
}

function others(): Fault[] {
  const attacks = KINDS.flatMap((kind) => kind.attacks);
  const [cores, callers, rounds] = ['CORES', 'CALLERS', 'ROUNDS'].map((name) =>
    sizesIn(INTERLEAVED, name),
  );
  return [
    {
      what: 'attacks of published code, of pages and of builds: [the list](security.md#attacks)',
      count: String(attacks.length),
      fails: 'one has another end than the list says',
      command: whole('test/runner/attacks'),
    },
    {
      what: 'cuts of a connection that is resumed, at random bytes',
      count: sizesIn('journey/sessions/resume.test.ts', 'CUTS'),
      fails: 'an event is lost or a command is done twice',
      command: `TABERN_TEST_CUTS=1000 ${whole('test/journey/sessions/resume.test.ts')}`,
    },
    {
      what:
        'random operations of several cores at once on one PostgreSQL, from a seed that a ' +
        'failure names',
      count:
        `2 cores, and ${cores}; ${callers} callers of each core, ${rounds} operations each of ` +
        'two cores, in all as many of more',
      fails: 'counters differ from rows, work is leased twice, a listener misses an event',
      command: `TABERN_TEST_ROUNDS=2000 ${whole(`test/${INTERLEAVED}`)}`,
    },
    {
      what: '`tabern upgrade` under load',
      count: sizesIn('journey/operations/upgrade/load.test.ts', 'UPGRADES'),
      fails: 'a session or an accepted invocation is lost',
      command: `TABERN_TEST_UPGRADES=10 ${whole('test/journey/operations/upgrade/load.test.ts')}`,
    },
  ];
}

function whole(path: string): string {
  return `node test/run.ts --all ${path}`;
}

function counted(digits: string): string {
  return Number(digits.replaceAll('_', '')).toLocaleString('en-US');
}
