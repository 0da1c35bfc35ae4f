/** The most expensive reports of a build: checked in a thread, in limited CPU time. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openValidator } from '../../../core/validation/validator.ts';

const test = suite('core/validation/manifest-cost');

/** Ten functions of 64 KiB each are the most that a build may report. */
const [FUNCTIONS, BYTES] = [10, (64 << 10) - 200];
/** Of the thread that serves everybody. */
const CPU_MAX_MS = 200;
const filled = (head: string, unit: (at: number) => string, tail: string): string => {
  const units: string[] = [];
  for (let at = 0, size = head.length + tail.length; ; at += 1) {
    size += unit(at).length + 1;
    if (size > BYTES) return head + units.join(',') + tail;
    units.push(unit(at));
  }
};
const levels = (open: string, close: string): string => {
  const count = Math.floor(BYTES / (open.length + close.length));
  return `${open.repeat(count)}1${close.repeat(count)}`;
};
const WORST: [string, { config?: string; schema?: string }][] = [
  ['members of a schema', { schema: filled('{"properties":{', (at) => `"m${at}":{}`, '}}') }],
  ['members of an object', { schema: filled('{', (at) => `"m${at}":1`, '}') }],
  ['levels of a schema', { schema: levels('{"not":', '}') }],
  ['branches', { schema: filled('{"anyOf":[', () => '{"minLength":1}', ']}') }],
  ['patterns', { schema: filled('{"allOf":[', () => '{"pattern":"^(a+)+$"}', ']}') }],
  ['members of settings', { config: filled('{', (at) => `"m${at}":1`, '}') }],
  ['levels of settings', { config: levels('{"a":', '}') }],
  ['domains', { config: filled('{"browserSettings":{"allowedDomains":[', () => '"a"', ']}}') }],
];

for (const [what, { config = '', schema = '' }] of WORST) {
  test(`${what}: ten functions of 64 KiB cost little CPU time in the main thread`, async () => {
    await using checks = openValidator();
    const manifests = Array.from({ length: FUNCTIONS }, (_, at) => ({
      name: `f${at}`,
      sessionConfigJson: config,
      paramsSchemaJson: schema,
    }));
    const before = process.threadCpuUsage();
    await checks.manifests('p', manifests).catch(() => undefined); // or too complex
    const { user, system } = process.threadCpuUsage(before);
    const ms = (user + system) / 1_000;
    assert.ok(ms < CPU_MAX_MS, `${ms} ms`);
  });
}

test.run();
