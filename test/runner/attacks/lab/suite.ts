/** The attacks as tests, in one place: each contained, its outcome true, the next unharmed. */
import type { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { findRuntime } from '../../../../runner/functions/runtime.ts';
import { KINDS } from '../table/all.ts';
import { type Attack, type Ending, endingIn, type Place, UNHARMED } from './attack.ts';
import { type Field, openField, type Ran, type Relay } from './field.ts';

type Tests = ReturnType<typeof suite>;

/** Two files for each place: together they would take a busy machine too long for one. */
const HEAVY = ['Time and memory', 'Floods and forgery'];
/**
 * They need more: a Chrome (test/runner/attacks/browser.test.ts), a whole build (build-*.test.ts),
 * tools that a person
 * runs (test/runner/attacks/local-tools.test.ts), the process whose cost is measured
 * (test/runner/attacks/table/costs.ts names the files),
 * the whole service (test/faults).
 */
const APART = [
  'Through its browser',
  'Through its build',
  'Cost of accepted input',
  'Local tools from a browser',
  'Head of line',
  'A stalled runner',
];

/** Adds a test for each kind: the heavy ones, or the others. */
export function addAttacks(tests: Tests, place: Place, isHeavy: boolean): void {
  for (const { title, attacks } of KINDS) {
    if (APART.includes(title) || HEAVY.includes(title) !== isHeavy) continue;
    tests(`${place}: ${title.toLowerCase()}: ${attacks.length} attacks are contained`, async () => {
      await runAll(place, attacks);
    });
  }
}

/** Runs them in one field; fails with every attack that is not contained. */
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
    if (ending.type === 'open') continue;
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
