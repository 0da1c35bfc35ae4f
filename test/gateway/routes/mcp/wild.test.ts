/**
 * Wild arguments for each tool: every answer is a result, and none is an internal error. Tools that
 * start a browser have a core of the test's own, the others a whole one with objects.
 */
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { TOOLS } from '../../../../gateway/routes/mcp/server.ts';
import type { Tool } from '../../../../gateway/routes/mcp/tool.ts';
import { Fault } from '../../../../proto/rpc/errors.ts';
import { KEY } from '../../../core/boot.ts';
import { ask, openGateway, KEY as STUB_KEY } from '../../sessions/runner.ts';
import { makeTenant } from '../../tenants/tenant.ts';
import { openUploads } from '../files/contexts.ts';

const test = suite('gateway/routes/mcp/wild');
const SEED = Number(process.env['TABERN_FUZZ_SEED'] ?? 7);
const COUNT = 40;
const STARTING = ['session_start', 'fetch', 'screenshot'];
/** Of rpc/errors.ts, for an error that is no Fault. */
const UNEXPECTED = /unexpected/i;

/** A wait of a call is none, or wrong. */
const WAITS = [0, -1, 46, 0.5, 'x', [], {}, true];
const TEXTS = ['', ' ', '\u0000', '🙂', '../..', '__proto__', 'constructor', 'x'.repeat(5_000)];

function argumentsOf({ properties }: Tool, ids: readonly string[]): fc.Arbitrary<object> {
  const value = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom<unknown>(...ids, ...TEXTS, 'http://x/', 0, 1, 60) },
    fc.jsonValue({ maxDepth: 3, stringUnit: 'binary' }),
  );
  const known = Object.fromEntries(Object.keys(properties).map((name) => [name, value]));
  const { wait = undefined, ...others } = known;
  const fixed =
    wait === undefined ? fc.constant({}) : fc.constantFrom(...WAITS.map((one) => ({ wait: one })));
  const record = fc.record(others, { requiredKeys: [] });
  const more = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue(), { maxKeys: 1 });
  const unknown = fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, more);
  return fc.tuple(record, unknown, fixed).map((all) => Object.assign({}, ...all));
}

async function useWildly(url: string, key: string, tools: readonly Tool[], ids: readonly string[]) {
  for (const tool of tools) {
    for (const given of fc.sample(argumentsOf(tool, ids), { seed: SEED, numRuns: COUNT })) {
      const params = { name: tool.name, arguments: given };
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      const headers = { 'content-type': 'application/json', 'x-svc-api-key': key };
      const { status, text, json } = await ask(url, 'POST', '/mcp', { headers, body });
      const where = `seed ${SEED}: ${tool.name} ${body.slice(0, 500)}: ${text.slice(0, 500)}`;
      // refused before it is read: text that is not Unicode, too deep
      if (status === 400) assert.match(text, /"Body /, where);
      else assert.ok(status === 200 && 'result' in (json as object), where);
      assert.not.match(text, UNEXPECTED, where);
    }
  }
}

test('tools that read and end', async () => {
  await using app = await openUploads();
  const { objects } = await makeTenant(app, KEY);
  const tools = TOOLS.filter(({ name }) => !STARTING.includes(name));
  assert.is(tools.length, TOOLS.length - STARTING.length);
  await useWildly(app.gateway.url, KEY, tools, Object.values(objects));
});

test('tools that start a browser', async () => {
  const refused = () => {
    throw new Fault('CONCURRENCY_LIMIT', 'limit 1, currently 1');
  };
  const oneShots = {
    readMarkdown: refused,
    readContent: refused,
    readLinks: refused,
    fetchResource: refused,
    takeScreenshot: refused,
  };
  await using gateway = await openGateway({ sessions: { createSession: refused }, oneShots });
  const tools = TOOLS.filter(({ name }) => STARTING.includes(name));
  await useWildly(gateway.url, STUB_KEY, tools, []);
});

test.run();
