import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Fault } from '../../../proto/rpc/errors.ts';
import { ask, assertBody, openGateway } from '../sessions/runner.ts';

const test = suite('gateway/routes/health');

test('/healthz needs no key and reports whether core responds', async () => {
  let isDown = false;
  await using gateway = await openGateway({
    projects: {
      async listProjects() {
        if (isDown) throw new Fault('CORE_UNAVAILABLE', 'connect ECONNREFUSED /a/path');
        throw new Fault('API_KEY_MISSING', 'Missing API key.');
      },
    },
  });
  const headers = { 'x-svc-api-key': [] as string[] };
  const well = await ask(gateway.url, 'GET', '/healthz', { headers });
  assert.is(well.status, 200);
  assert.is(well.text, '{"status":"ok"}');
  isDown = true;
  const down = await ask(gateway.url, 'GET', '/healthz', { headers });
  assertBody(down, 'Service Unavailable', 'The service is not ready.');
});

test.run();
