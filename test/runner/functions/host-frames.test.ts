/** Reading a function host's frame has a bounded cost, whatever its content. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readHostFrame } from '../../../runner/functions/host-frames.ts';
import { encode, type FromHost, LOG_LINES_MAX } from '../../../runner/host/messages.ts';

const frames = suite('runner/functions/host-frames');

const BYTES = (4 << 20) - 100;
const HEADER_BYTES = 4;

frames('the longest frames are read as they were sent', () => {
  const line = { level: 'log', message: '"é\n"', timestamp: 1 } as const;
  const lines = Array.from({ length: LOG_LINES_MAX }, () => line);
  for (const sent of [
    { type: 'log', id: 'a', lines },
    { type: 'result', id: 'a', json: `[${'[],'.repeat(100_000)}0]` },
    { type: 'done', id: 'a', retired: '' },
  ] satisfies FromHost[]) {
    assert.equal(readHostFrame(encode(sent).subarray(HEADER_BYTES)), sent);
  }
});

frames('a frame with many members is refused before it is parsed', () => {
  const members = Array.from({ length: BYTES / 14 }, (_, at) => `"key${at}":1`).join(',');
  const worst = [`{"type":"log","id":"a","lines":[{${members}}]}`, `{${members}}`];
  for (const text of [...worst, `{"lines":${'['.repeat(BYTES / 2)}${']'.repeat(BYTES / 2)}}`]) {
    const body = Buffer.from(text);
    const cpu = process.cpuUsage();
    assert.throws(() => readHostFrame(body), /too many values|stack limit/);
    const { user, system } = process.cpuUsage(cpu);
    assert.ok((user + system) / 1_000 < 500, `${(user + system) / 1_000} ms`);
  }
});

frames('manifests with many members are refused before they are parsed', () => {
  const head = '{"type":"manifests","id":"a"}\n';
  const members = Array.from({ length: 150_000 }, (_, at) => `"k${at}":1`).join(',');
  for (const text of [`[{${members}}]`, `[${'[],'.repeat(600_000)}0]`]) {
    const body = Buffer.from(head + text);
    const cpu = process.cpuUsage();
    assert.throws(() => readHostFrame(body), /too many values/);
    const { user, system } = process.cpuUsage(cpu);
    assert.ok((user + system) / 1_000 < 200, `${(user + system) / 1_000} ms`);
  }
});

frames.run();
