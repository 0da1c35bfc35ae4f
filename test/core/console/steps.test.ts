/** The steps of a run: reported with its outcome, and listed for its project. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { must } from '../../../proto/common/must.ts';
import type { CompleteInvocationRequest } from '../../../proto/gen/tabern/v1/runners.pb.ts';
import { faultOf } from '../../support/fault.ts';
import { boot } from '../boot.ts';

const test = suite('core/console/steps');

type Step = CompleteInvocationRequest['steps'][number];

/** A core, and runs that end with these steps. */
async function openRuns() {
  const app = await boot();
  const functionId = await app.publish({ name: 'title' });
  const { console } = app.clients;
  return {
    ...app,
    async run(steps: Step[]): Promise<string> {
      const { id } = await app.invoke(functionId);
      const { leaseId } = must((await app.lease('INVOCATION'))[0], 'an invocation');
      const end = { leaseId, outcome: undefined, sessionStartMs: 0, steps };
      await app.clients.runners.completeInvocation(end, app.asRunner);
      return id;
    },
    steps: async (id: string) => (await console.listInvocationSteps({ id }, app.asProject)).steps,
    read: async (id: string) => (await console.getInvocation({ id }, app.asProject)).invocation,
  };
}

test('the steps of a run are listed as they were reported, in whole milliseconds', async () => {
  await using app = await openRuns();
  const id = await app.run([
    { name: 'browser', startMs: 0.2, endMs: 120.4, failed: false },
    { name: 'handler', startMs: 121, endMs: 900, failed: true },
  ]);
  assert.equal(await app.steps(id), [
    { name: 'browser', startMs: 0, endMs: 120, failed: false },
    { name: 'handler', startMs: 121, endMs: 900, failed: true },
  ]);
  const row = await app.read(id);
  assert.equal([row?.id, row?.status, row?.functionName], [id, 'COMPLETED', 'title']);
  assert.equal(await app.steps(await app.run([])), []);
});

test('a wrong step is refused, and its field named; the invocation goes on', async () => {
  await using app = await openRuns();
  const step = { name: 'a', startMs: 0, endMs: 1, failed: false };
  const wrong: [string, Step[]][] = [
    ['steps', Array.from({ length: 33 }, () => step)],
    ['steps.name', [{ ...step, name: '' }]],
    ['steps.name', [{ ...step, name: 'x'.repeat(65) }]],
    ['steps.endMs', [{ ...step, startMs: 2 }]],
    ['steps.endMs', [{ ...step, endMs: Number.NaN }]],
    ['steps.endMs', [{ ...step, startMs: -1 }]],
  ];
  for (const [field, steps] of wrong) {
    const fault = await faultOf(app.run(steps));
    assert.equal([fault.reason, fault.facts['field']], ['INVALID_FIELD', field]);
  }
  const [{ id } = { id: '' }] = (
    await app.clients.console.listInvocations({ from: undefined, to: undefined }, app.asProject)
  ).invocations;
  assert.is((await app.read(id))?.status, 'RUNNING');
});

test('another project finds neither the invocation nor its steps', async () => {
  await using app = await openRuns();
  const id = await app.run([{ name: 'handler', startMs: 0, endMs: 1, failed: false }]);
  const { operators, console } = app.clients;
  const { project } = await operators.createProject({ name: 'other', limits: {} }, app.asOperator);
  const wanted = { project: must(project?.project, 'a project').id, name: '' };
  const { key } = await operators.createApiKey(wanted, app.asOperator);
  const theirs = { metadata: { 'x-svc-api-key': key } };
  for (const call of [
    () => console.getInvocation({ id }, theirs),
    () => console.listInvocationSteps({ id }, theirs),
    () => console.listInvocationSteps({ id: newId() }, app.asProject),
  ]) {
    assert.is((await faultOf(call())).reason, 'RESOURCE_NOT_FOUND');
  }
});

test.run();
