/** The attacks could succeed: these do without a sandbox. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openField } from './lab/field.ts';
import { KINDS } from './table/all.ts';

const tests = suite('runner/attacks/control');
const attacks = KINDS.flatMap(({ attacks }) => attacks.filter(({ hasControl }) => hasControl));

tests(`${attacks.length} attacks succeed without a sandbox`, async () => {
  await using field = await openField('none');
  const failed: string[] = [];
  for (const attack of attacks) {
    const { outcome } = await field.attack(attack);
    const said: object =
      outcome.type === 'result' && outcome.json !== undefined ? JSON.parse(outcome.json) : outcome;
    const isDone = Object.values(said).every((answer) => String(answer).startsWith('yes: '));
    if (!isDone) failed.push(`${attack.name}: ${JSON.stringify(said)}`);
  }
  assert.equal(failed, []);
  const reached = field.machine.heard;
  assert.ok(
    reached.some((one) => one.startsWith('TCP')) && reached.some((one) => /unix/.test(one)),
  );
});

tests.run();
