import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { UnresolvedName } from '../../../gateway/webhooks/ssrf-guard.ts';
import { ask, assertBody, json, openGateway } from '../sessions/runner.ts';

const test = suite('gateway/webhooks/endpoint-check');
const MESSAGE = '`endpoint` must be a public https URL: it names a host that is not public.';
const ANSWERS: Record<string, string[]> = {
  'public.example': ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c'],
  'private.example': ['10.1.2.3'],
  'mixed.example': ['93.184.215.14', '169.254.169.254'],
  'mapped.example': ['::ffff:127.0.0.1'],
};

/** A core that records the endpoints that it registers, and the names that it resolves. */
async function openRegistry() {
  const registered: (string | undefined)[] = [];
  const resolved: string[] = [];
  const webhook = {
    id: 'w',
    projectId: 'p',
    endpoint: 'x',
    eventTypes: [],
    status: 'ENABLED' as const,
    createdAt: new Date(0),
    updatedAt: new Date(0),
    secret: undefined,
    disabledAt: undefined,
    disabledReason: undefined,
    failingSince: undefined,
  };
  const register = async ({ endpoint }: { endpoint?: string | undefined }) => {
    registered.push(endpoint);
    return { webhook };
  };
  const gateway = await openGateway(
    { webhooks: { createWebhook: register, updateWebhook: register } },
    async (name) => {
      resolved.push(name);
      const addresses = ANSWERS[name];
      if (addresses === undefined) throw new UnresolvedName(name);
      return addresses;
    },
  );
  return { gateway, registered, resolved };
}

const WAYS = [
  ['POST', '/v1/webhooks', 201],
  ['PATCH', '/v1/webhooks/w', 200],
] as const;

test('a name with a blocked address is refused before the call to core', async () => {
  const { gateway, registered } = await openRegistry();
  await using _ = gateway;
  for (const [method, path] of WAYS) {
    for (const host of ['private.example', 'mixed.example', 'mapped.example:8443']) {
      const answer = await ask(gateway.url, method, path, json({ endpoint: `https://${host}/x` }));
      assert.is(answer.status, 400, host);
      assertBody(answer, 'Bad Request', MESSAGE);
    }
  }
  assert.equal(registered, []);
});

test('public names, unresolved names and literal addresses are passed to core', async () => {
  const { gateway, registered, resolved } = await openRegistry();
  await using _ = gateway;
  const endpoints = [
    'https://public.example/',
    'https://later.example/',
    'https://10.0.0.1/',
    'http://private.example/',
    'nonsense',
  ];
  for (const [method, path, status] of WAYS) {
    for (const endpoint of endpoints) {
      const answer = await ask(gateway.url, method, path, json({ endpoint }));
      assert.is(answer.status, status, endpoint);
    }
  }
  assert.equal(registered, [...endpoints, ...endpoints]);
  const names = ['public.example', 'later.example'];
  assert.equal(resolved, [...names, ...names]);
  await ask(gateway.url, 'PATCH', '/v1/webhooks/w', json({ eventTypes: ['x'] }));
  assert.is(registered.at(-1), undefined);
  assert.is(resolved.length, 4);
});

test('no name is resolved for an invalid key', async () => {
  const { gateway, registered, resolved } = await openRegistry();
  await using _ = gateway;
  for (const key of ['svc_not-a-key-of-anybody', '']) {
    const { headers, body } = json({ endpoint: 'https://private.example/' });
    const stranger = { headers: { ...headers, 'x-svc-api-key': key }, body };
    assert.is((await ask(gateway.url, 'POST', '/v1/webhooks', stranger)).status, 401);
  }
  assert.equal([registered, resolved], [[], []]);
});

test.run();
