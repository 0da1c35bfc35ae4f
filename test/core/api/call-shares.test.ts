/** Calls in progress of all projects: a flood from one project leaves capacity for another. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { faultOf } from '../../support/fault.ts';
import { boot } from '../boot.ts';

const test = suite('core/api/call-shares');
const FLOOD = 6_000;
const PAGE = { limit: undefined, cursor: undefined };

test("a flood of calls of one project does not refuse another project's call", async () => {
  await using app = await boot();
  const { operators, contexts } = app.clients;
  await operators.createProject({ name: 'second', limits: {} }, app.asOperator);
  const { key } = await operators.createApiKey({ project: 'second', name: '' }, app.asOperator);
  const second = { metadata: { 'x-svc-api-key': must(key, 'a key') } };
  for (const as of [app.asProject, second]) await contexts.listContexts(PAGE, as);

  const flood = Array.from({ length: FLOOD }, () => contexts.listContexts(PAGE, app.asProject));
  const ended = Promise.allSettled(flood);
  const startedAt = performance.now();
  await contexts.listContexts(PAGE, second);
  const ms = performance.now() - startedAt;
  assert.ok(ms < 10_000, `${Math.round(ms)} ms`);
  const refused = (await ended).filter(({ status }) => status === 'rejected');
  const [first] = refused as PromiseRejectedResult[];
  const fault = await faultOf(Promise.reject(first?.reason));
  assert.is(fault.reason, 'CONCURRENCY_LIMIT', fault.message);
  await contexts.listContexts(PAGE, app.asProject);
});

test.run();
