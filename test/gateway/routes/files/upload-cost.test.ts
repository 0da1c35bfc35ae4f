/**
 * The cost of a form of the largest size, for each expensive content: parts, headers of a
 * part, beginnings of a boundary, parameters. The gateway reads forms on its main thread.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UPLOAD_MAX_BYTES } from '../../../../gateway/config.ts';
import { KEY } from '../../sessions/runner.ts';
import { BUILDS_PATH, openKeeping } from './uploads.ts';

const test = suite('gateway/routes/files/upload-cost');

/** Of this whole process, client included. */
const CPU_MAX_MS = 2_500;
const BOUNDARY = 'b'.repeat(70);
const PART = `--${BOUNDARY}\r\ncontent-disposition: form-data; name=`;
const ARCHIVE = `${PART}"archive"; filename="a"\r\n`;
const METADATA = `${PART}"metadata"\r\n\r\n`;

/** As many units as fit behind the head. */
function filled(head: string, unit: string, tail = ''): Buffer {
  const count = Math.floor((UPLOAD_MAX_BYTES - head.length - tail.length) / unit.length);
  return Buffer.from(head + unit.repeat(count) + tail, 'latin1');
}

const END = `\r\n--${BOUNDARY}--\r\n`;
const WORST: [string, () => Buffer][] = [
  ['parts', () => filled('', `${PART}"x"\r\n\r\n1\r\n`, END)],
  ['empty parts', () => filled('', `--${BOUNDARY}\r\n\r\n\r\n`, END)],
  ['files', () => filled('', `${PART}"x"; filename="y"\r\n\r\n1\r\n`, END)],
  ['headers of a part', () => filled(ARCHIVE, 'a: b\r\n', `\r\nx${END}`)],
  ['a header without an end', () => filled(ARCHIVE, 'a', END)],
  ['parameters of a header', () => filled(`${PART}"x"`, '; a="\\"', `\r\n\r\nx${END}`)],
  ['beginnings of a boundary', () => filled(`${ARCHIVE}\r\n`, `\r\n--${'b'.repeat(69)}`, END)],
  ['line breaks', () => filled(`${ARCHIVE}\r\n`, '\r\n-', END)],
  ['metadata of the largest size', () => filled(METADATA, '{"a":', END)],
];

for (const [what, worst] of WORST) {
  test(`${what}: a form of ${UPLOAD_MAX_BYTES} bytes costs little CPU time`, async () => {
    const { gateway } = await openKeeping();
    await using _ = gateway;
    const body = worst();
    assert.ok(body.length <= UPLOAD_MAX_BYTES);
    const type = `multipart/form-data; boundary=${BOUNDARY}`;
    const headers = { 'x-bb-api-key': KEY, 'content-type': type };
    const before = process.cpuUsage();
    const answer = await fetch(gateway.url + BUILDS_PATH, { method: 'POST', headers, body });
    await answer.arrayBuffer();
    const { user, system } = process.cpuUsage(before);
    const ms = (user + system) / 1_000;
    assert.ok(answer.status >= 400 && answer.status < 500, `${answer.status}`);
    assert.ok(ms < CPU_MAX_MS, `${ms} ms`);
  });
}

test.run();
