/** Session server answers contain titles and URLs of pages: the gateway limits their size. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { callSessionServer } from '../../../gateway/sessions/runner-client.ts';
import { faultOf } from '../../support/fault.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('gateway/sessions/runner-answers');
const MIB = 1 << 20;

/** Sends a request to a session server that responds with a list of one URL of that size. */
async function asked(bytes: number): Promise<unknown> {
  await using dir = tempDirectory();
  await using opened = new AsyncDisposableStack();
  const path = join(dir.path, 'runner.sock');
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify([{ url: 'x'.repeat(bytes) }]));
  });
  opened.use(server);
  server.listen(path);
  await once(server, 'listening');
  const place = { address: `unix:${path}`, signingKey: 'key' };
  const { signal } = new AbortController();
  return await callSessionServer(place, { method: 'GET', path: '/json/list', signal });
}

test('an answer of a few MiB is accepted', async () => {
  const [target] = (await asked(2 * MIB)) as [{ url: string }];
  assert.is(target.url.length, 2 * MIB);
});

test('a longer response is refused before it is parsed', async () => {
  assert.is((await faultOf(asked(16 * MIB))).reason, 'BROWSER_FAILED');
});

test.run();
