/** The body of a delivery: proto/spec/webhooks.md 2. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  BODY_MAX_BYTES,
  CAUSE_MAX_BYTES,
  cutUtf8,
  envelope,
} from '../../../core/delivery/envelope.ts';
import { TEST_START_MS } from '../../support/clock.ts';

const suiteOf = suite('core/delivery/envelope');
const event = {
  id: 'e1',
  type: 'functions.invocations.completed',
  resourceId: 'i1',
  projectId: 'p1',
  at: TEST_START_MS,
};
const read = (data: Record<string, unknown>) => JSON.parse(envelope({ ...event, data }).toString());

suiteOf('the envelope has the keys of the interface and the time of the event', () => {
  assert.equal(read({ status: 'COMPLETED', results: { n: 1 } }), {
    id: 'e1',
    type: 'functions.invocations.completed',
    timestamp: '2026-01-02T03:04:05.678Z',
    resourceId: 'i1',
    projectId: 'p1',
    data: { status: 'COMPLETED', results: { n: 1 }, resultsTruncated: false },
  });
});

suiteOf('params are omitted', () => {
  assert.not('params' in read({ params: { password: 'x' }, results: null }).data);
});

suiteOf('results beyond the limit become null, with resultsTruncated', () => {
  const { data } = read({ status: 'COMPLETED', results: 'x'.repeat(BODY_MAX_BYTES) });
  assert.equal(data, { status: 'COMPLETED', results: null, resultsTruncated: true });
});

suiteOf('the limit is 20 KiB of the whole body', () => {
  const empty = envelope({ ...event, data: { results: '' } }).length;
  const fits = 'x'.repeat(BODY_MAX_BYTES - empty);
  assert.is(envelope({ ...event, data: { results: fits } }).length, BODY_MAX_BYTES);
  assert.is(read({ results: fits }).data.results, fits);
  assert.is(read({ results: `${fits}x` }).data.results, null);
});

suiteOf('a cause keeps its code and the start of its message', () => {
  const { data } = read({ cause: { code: 'WORKLOAD_ERROR', message: 'ü'.repeat(5_000) } });
  assert.is(data.cause.code, 'WORKLOAD_ERROR');
  assert.is(Buffer.byteLength(data.cause.message), CAUSE_MAX_BYTES);
  assert.not('resultsTruncated' in data);
});

suiteOf('other members beyond the limit become null and are listed in truncated', () => {
  const { data } = read({ id: 'b1', builtFunctions: ['x'.repeat(BODY_MAX_BYTES)] });
  assert.equal(data, { id: 'b1', builtFunctions: null, truncated: ['builtFunctions'] });
});

suiteOf('a truncated text ends with a whole character', () => {
  assert.is(cutUtf8('a🦊b', 4), 'a');
  assert.is(cutUtf8('a🦊b', 5), 'a🦊');
  assert.is(cutUtf8('abc', 3), 'abc');
});

suiteOf.run();
