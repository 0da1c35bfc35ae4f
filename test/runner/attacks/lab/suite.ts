/** The attacks as tests of one place: contained, with the expected end, the next run unharmed. */
import type { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { findRuntime } from '../../../../runner/functions/runtime.ts';
import { rowsIn } from '../../../support/whole.ts';
import { KINDS } from '../table/all.ts';
import { type Attack, type Ending, endingIn, PLACES, type Place, UNHARMED } from './attack.ts';
import { type Field, openField, type Ran, type Relay } from './field.ts';

type Tests = ReturnType<typeof suite>;

/** Two files for each place: together they would exceed a file's time limit on a busy machine. */
const HEAVY = ['Time and memory', 'Floods and forgery'];
/**
 * Run by other tests: with a Chrome (browser.test.ts), a whole build (build-*.test.ts), local tools
 * (local-tools.test.ts), a measured process (table/costs.ts names the files), the REST interface
 * (test/gateway/tenants), the whole service (test/faults).
 */
const APART = [
  'Through its browser',
  'Through its build',
  'Cost of accepted input',
  'Local tools from a browser',
  "Another project's objects",
  'Head of line',
  'A stalled runner',
];

/** Adds a test for each kind: the heavy ones, or the others. */
export function addAttacks(tests: Tests, place: Place, isHeavy: boolean): void {
  for (const { title, attacks } of KINDS) {
    if (APART.includes(title) || HEAVY.includes(title) !== isHeavy) continue;
    const rows = attacksIn(attacks, place);
    if (rows.length === 0) continue;
    tests(`${place}: ${title.toLowerCase()}: ${rows.length} attacks are contained`, async () => {
      await runAll(place, rows);
    });
  }
}

/** The attacks of this run in that place; those that the guide calls open are not run. */
export function attacksIn(rows: readonly Attack[], place: Place): Attack[] {
  const keyOf = (attack: Attack, one: Place) => {
    const ending = endingIn(attack, one);
    return ending.type === 'open' || ending.type === 'unrun' ? undefined : ending;
  };
  return rowsIn({ rows, places: PLACES, keyOf }, place);
}

/** Runs them in one field; fails with the list of attacks that are not contained. */
export async function runAll(
  place: Place,
  attacks: readonly Attack[],
  relay?: Relay,
): Promise<void> {
  const isDeno = place === 'deno';
  const launcher = isDeno ? 'bwrap' : place;
  const runtime = await findRuntime(isDeno ? 'deno' : 'node', {});
  await using field = await openField(launcher, relay, runtime);
  assert.is(field.jail.level, launcher);
  const failed: string[] = [];
  for (const attack of attacks) {
    const ending = endingIn(attack, place);
    try {
      await runOne(field, attack, ending);
    } catch (error) {
      failed.push(`${attack.name}: ${(error as Error).message}`);
    }
  }
  assert.equal(failed, []);
  assert.is(await field.bystander(), 'aborted', 'another project’s run');
}

async function runOne(field: Field, attack: Attack, ending: Ending): Promise<void> {
  const isEnded = ending.type === 'ended' || ending.type === 'own';
  const ran = await field.attack(attack, { isEnded });
  judge(ran, ending);
  const { outcome, lines } = await field.next(attack);
  assert.is(outcome.type, 'result', `the next run: ${JSON.stringify(outcome).slice(0, 300)}`);
  assert.equal(parsed({ outcome, lines }), UNHARMED, 'what the next run found');
  assert.equal(lines, [], 'what the next run printed');
  assert.equal(field.machine.heard.splice(0), [], 'who was reached');
  assert.equal(field.machine.changed(), [], 'what was changed');
}

function judge(ran: Ran, ending: Ending): void {
  const { outcome } = ran;
  const said = JSON.stringify(outcome).slice(0, 500);
  switch (ending.type) {
    case 'refused': {
      assert.is(outcome.type, 'result', said);
      const tried = Object.entries(parsed(ran) as Record<string, unknown>);
      assert.ok(tried.length > 0);
      const got = tried.filter(([, answer]) => !String(answer).startsWith('no: '));
      assert.equal(Object.fromEntries(got), {});
      break;
    }
    case 'fails':
    case 'lost':
      assert.is(outcome.type, 'failure', said);
      if (outcome.type !== 'failure') break;
      assert.is(outcome.code, 'WORKLOAD_ERROR');
      assert.match(outcome.message || outcome.name, ending.why);
      break;
    case 'ended':
      assert.is(outcome.type, 'aborted', said);
      break;
    case 'gives':
      assert.equal(parsed(ran), ending.value);
      if (ending.printed) assert.ok(ending.printed(ran.lines), `${ran.lines.length} lines`);
      break;
    case 'own':
      assert.ok(outcome.type === 'aborted' || outcome.type === 'failure', said);
      if (ending.why && outcome.type === 'failure') {
        assert.match(outcome.message || outcome.name, ending.why);
      }
      break;
    case 'open':
    case 'unrun':
      break;
  }
}

export function parsed({ outcome }: Ran): unknown {
  if (outcome.type !== 'result') throw new Error(`no result: ${JSON.stringify(outcome)}`);
  return outcome.json === undefined ? undefined : JSON.parse(outcome.json);
}
