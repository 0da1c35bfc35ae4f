import { BlockList } from 'node:net';
import type Router from '@koa/router';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openApp } from '../../../gateway/app.ts';
import { operationsOf, readContract } from '../../../gateway/rest/operations.ts';
import { describe } from '../../../gateway/routes/openapi.ts';
import { openGuard } from '../../../gateway/webhooks/ssrf-guard.ts';
import { openLog } from '../../../proto/common/log.ts';
import { localClients } from '../../../proto/rpc/services.ts';
import { ask, handlersOf, openGateway } from '../sessions/runner.ts';

const test = suite('gateway/routes/openapi');

test('/openapi.json needs no key and holds every annotated route, and no other', async () => {
  await using gateway = await openGateway();
  const headers = { 'x-svc-api-key': [] as string[] };
  const answer = await ask(gateway.url, 'GET', '/openapi.json', { headers });
  assert.is(answer.status, 200);
  const { paths, components } = answer.json as {
    paths: Record<string, Record<string, { summary: string }>>;
    components: { schemas: Record<string, { properties: object }> };
  };
  const described = Object.entries(paths).flatMap(([path, verbs]) =>
    Object.keys(verbs).map((verb) => `${verb} ${path}`),
  );
  const camel = (template: string) =>
    template.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const expected = operationsOf(readContract()).map((one) => `${one.verb} ${camel(one.template)}`);
  const content = '/v1/contexts/{id}/content';
  const byHand = [
    ...['get /healthz', 'get /readyz', 'get /openapi.json', 'post /v1/functions/builds'],
    ...[`get ${content}`, `put ${content}`],
    ...['get /v1/sessions/{sessionId}/downloads', 'post /v1/sessions/{id}/uploads'],
    ...['post /v1/extensions', 'post /v1/sessions/start'],
    'get /v1/sessions/{id}/recording/downloads/{name}',
    ...['get /docs', 'get /docs/{file}', 'get /live', 'get /live/status', 'get /live/{file}'],
    ...['get /', 'get /connect', 'get /view'],
    ...['', '/connect'].flatMap((base) => [
      ...['version', 'version/', 'list', 'protocol'].map((name) => `get ${base}/json/${name}`),
      ...['activate', 'close'].map((name) => `get ${base}/json/${name}/{id}`),
      ...['page', 'browser'].map((kind) => `get ${base}/devtools/${kind}/{id}`),
      ...[`get ${base}/json`, `put ${base}/json/new`],
    ]),
    ...['', '/{name}'].map((more) => `get /v1/sessions/{id}/replays/{pageId}${more}`),
  ];
  assert.equal(described.sort(), [...expected, ...byHand].sort());
  for (const verbs of Object.values(paths)) {
    for (const operation of Object.values(verbs)) assert.ok(operation.summary);
  }
  assert.ok('createdAt' in (components.schemas['Context']?.properties ?? {}));
  const references = answer.text.matchAll(/#\/components\/schemas\/([\w.]+)/g);
  for (const [, name = ''] of references) assert.ok(components.schemas[name], name);
});

test('an invocation is described with its headers, its version and both its answers', async () => {
  await using gateway = await openGateway();
  const { json } = await ask(gateway.url, 'GET', '/openapi.json');
  type Operation = {
    parameters: { name: string; in: string }[];
    requestBody: { content: { 'application/json': { schema: { properties: object } } } };
    responses: object;
  };
  const { paths } = json as { paths: Record<string, Record<string, Operation>> };
  const { post } = paths['/v1/functions/{functionId}/invoke'] ?? {};
  const named = (of: Operation | undefined) =>
    of?.parameters.map((one) => `${one.in} ${one.name}`).sort();
  assert.equal(named(post), ['header Idempotency-Key', 'header Prefer', 'path functionId']);
  const { properties } = post?.requestBody.content['application/json'].schema ?? {};
  assert.equal(Object.keys(properties ?? {}), ['params', 'sessionCreateParams', 'versionId']);
  assert.equal(Object.keys(post?.responses ?? {}), ['200', '202', 'default']);
  const { get } = paths['/v1/functions/invocations/{id}'] ?? {};
  assert.equal(named(get), ['path id', 'query wait']);
});

test('each path has the methods that it is described with, and no other', async () => {
  await using gateway = await openGateway();
  const { json } = await ask(gateway.url, 'GET', '/openapi.json');
  const { paths } = json as { paths: Record<string, Record<string, { responses: object }>> };
  for (const [template, verbs] of Object.entries(paths)) {
    // An upgrade is no request of HTTP: it never comes to a route.
    if ('101' in (verbs['get']?.responses ?? {})) continue;
    const { status, headers } = await ask(gateway.url, 'PROPFIND', template.replace(/[{}]/g, ''));
    assert.is(status, 405, template);
    const served = String(headers['allow']).split(', ');
    // To the route of sessions, `start` is an id like any other.
    const beside = template === '/v1/sessions/start' ? ['DELETE', 'GET'] : [];
    const described = [...Object.keys(verbs).map((verb) => verb.toUpperCase()), ...beside];
    assert.equal(served.filter((verb) => verb !== 'HEAD').sort(), described.sort(), template);
  }
});

test('no route exists that is not described', async () => {
  const registry = readContract();
  const { paths } = describe(registry, operationsOf(registry)) as { paths: object };
  const described = new Set(
    Object.entries(paths).flatMap(([path, verbs]) => {
      const pattern = path.replace(/\{\w+\}/g, ':_');
      return Object.keys(verbs).map((verb) => `${verb.toUpperCase()} ${pattern}`);
    }),
  );
  const found = routesOf().map(([method, path]) => `${method} ${path.replace(/:\w+/g, ':_')}`);
  assert.ok(found.length > 60, `${found.length} routes`);
  for (const route of found) assert.ok(described.has(route), route);
});

/** Of every router that the application is made of. */
function routesOf(): [method: string, path: string][] {
  const app = openApp({
    clients: localClients(handlersOf({}), { onError: () => undefined }),
    gatewayToken: 'a-token',
    guard: openGuard(new BlockList()),
    publicUrl: undefined,
    log: openLog({ role: 'test', level: 'silent' }),
    draining: new AbortController().signal,
  });
  const routers = app.middleware.flatMap((one) => (one as { router?: Router }).router ?? []);
  assert.is(routers.length, 3);
  return routers.flatMap(({ stack }) =>
    stack.flatMap(({ methods, path }) =>
      methods
        .filter((method) => method !== 'HEAD')
        .map((method): [string, string] => [method, String(path)]),
    ),
  );
}

test.run();
