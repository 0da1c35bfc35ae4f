/** Endpoints of published clients that are not served: 501 with a sentence. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ask, assertBody, openGateway } from '../sessions/runner.ts';

const test = suite('gateway/routes/unserved');
const STRANGER = { 'x-svc-api-key': [] as string[] };

test('unserved endpoints of published clients are 501, with the alternative', async () => {
  await using gateway = await openGateway();
  for (const [method, path] of [
    ['POST', '/webdriver/session'],
    ['GET', '/webdriver'],
    ['DELETE', '/webdriver/session/1'],
  ] as const) {
    const answer = await ask(gateway.url, method, path, { headers: STRANGER });
    const sentence = 'WebDriver is not served here; drive the session over CDP by its connectUrl.';
    assertBody(answer, 'Not Implemented', sentence);
    assert.is(answer.status, 501);
    assert.is(answer.headers['x-should-retry'], 'false', 'published clients retry a 5xx');
  }
  for (const [method, path] of [
    ['POST', '/v1/agents'],
    ['PATCH', '/v1/agents/01a1fbc0-0000-7000-8000-000000000000'],
    ['GET', '/v1/agents/runs'],
    ['GET', '/v1/agents/runs/01a1fbc0-0000-7000-8000-000000000000/messages'],
    ['POST', '/v1/agents/runs/01a1fbc0-0000-7000-8000-000000000000/stop'],
  ] as const) {
    assert.is((await ask(gateway.url, method, path)).status, 501, path);
    assert.is((await ask(gateway.url, method, path, { headers: STRANGER })).status, 401, path);
  }
  const agents = await ask(gateway.url, 'GET', '/v1/agents');
  assertBody(
    agents,
    'Not Implemented',
    'Agents and their runs are not served here; run an agent as a function, or drive a session.',
  );
  for (const path of ['/webdrivers', '/v1/agentsx']) {
    assert.is((await ask(gateway.url, 'GET', path)).status, 404, path);
  }
});

test('a GET of a WebSocket URL is 426 with Upgrade', async () => {
  await using gateway = await openGateway();
  for (const path of ['/connect?signingKey=x', '/connect', '/view?token=x', '/?apiKey=x']) {
    const answer = await ask(gateway.url, 'GET', path, { headers: STRANGER });
    const sentence = 'This is the address of a WebSocket; open it as ws or wss.';
    assertBody(answer, 'Upgrade Required', sentence);
    assert.is(answer.status, 426);
    assert.is(answer.headers['upgrade'], 'websocket', path);
    assert.match(String(answer.headers['connection']), /upgrade/i);
  }
  const home = await ask(gateway.url, 'GET', '/', { headers: STRANGER });
  assert.equal([home.status, home.headers['location']], [302, '/console']);
  assert.is((await ask(gateway.url, 'POST', '/connect', { headers: STRANGER })).status, 404);
});

test.run();
