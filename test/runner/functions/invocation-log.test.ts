/** The log of an invocation: its size limit. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../proto/common/log.ts';
import { openInvocationLog } from '../../../runner/functions/invocation-log.ts';
import { MARKER, RUN_MAX_BYTES } from '../../../runner/host/messages.ts';

const test = suite('runner/functions/invocation-log');
const log = openLog({ role: 'test', level: 'silent' });
const line = { level: 'log', message: 'a', timestamp: 1 } as const;
const never = new AbortController().signal;

test('a log over the limit is truncated with one marker', async () => {
  const got: string[] = [];
  const lease = {
    async appendLogs(_first: number, sent: readonly { message: string }[]) {
      got.push(...sent.map(({ message }) => message));
    },
    pauseOf: (_id: string, ms: number) => ms,
  };
  const lines = openInvocationLog({ lease, id: 'i', log });
  lines.add(Array(40).fill({ ...line, message: 'x'.repeat(RUN_MAX_BYTES / 32) }));
  await lines.flush(never);
  assert.is(got.filter((message) => message === MARKER).length, 1);
  assert.is(got.at(-1), MARKER);
  assert.is(got.length, 32);
});

test.run();
