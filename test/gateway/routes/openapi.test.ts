import { BlockList } from 'node:net';
import type Router from '@koa/router';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { openApp } from '../../../gateway/app.ts';
import {
  isPublished,
  operationsOf,
  readContract,
  readDocumentedContract,
} from '../../../gateway/rest/operations.ts';
import { describe } from '../../../gateway/routes/openapi.ts';
import { openGuard } from '../../../gateway/webhooks/ssrf-guard.ts';
import { openLog } from '../../../proto/common/log.ts';
import { localClients } from '../../../proto/rpc/services.ts';
import { KEY as CORE_KEY } from '../../core/boot.ts';
import { until } from '../../support/poll.ts';
import { ask, handlersOf, openGateway } from '../sessions/runner.ts';
import { openUploads } from './files/contexts.ts';

const test = suite('gateway/routes/openapi');

test('/openapi.json needs no key and describes every route, and no other', async () => {
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
  const published = operationsOf(readContract()).filter(isPublished);
  const expected = published.map((one) => `${one.verb} ${camel(one.template)}`);
  assert.not.match(answer.text, /console/i);
  const content = '/v1/contexts/{id}/content';
  const byHand = [
    ...['get /healthz', 'get /readyz', 'get /openapi.json', 'post /v1/functions/builds'],
    ...[`get ${content}`, `put ${content}`],
    ...['get /v1/sessions/{sessionId}/downloads', 'post /v1/sessions/{id}/uploads'],
    ...['post /v1/certificates', 'post /v1/extensions', 'post /v1/sessions/start'],
    'post /mcp',
    'get /v1/sessions/{id}/recording/downloads/{name}',
    ...['get /docs', 'get /docs/api', 'get /docs/{file}', 'get /llms.txt', 'get /llms-full.txt'],
    ...['get /live', 'get /live/status', 'get /live/{file}'],
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

test('an invocation is described with its headers, its version and both responses', async () => {
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

/** To the route of an id, these last words are ids like any other. */
const BESIDE: Readonly<Record<string, string[]>> = {
  '/v1/sessions/start': ['DELETE', 'GET'],
  '/v1/functions/builds': ['DELETE'],
  '/v1/secrets/keypair': ['DELETE', 'PATCH'],
};

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
    const beside = BESIDE[template] ?? [];
    const described = [...Object.keys(verbs).map((verb) => verb.toUpperCase()), ...beside];
    assert.equal(served.filter((verb) => verb !== 'HEAD').sort(), described.sort(), template);
  }
});

test('no route exists that is not described', async () => {
  const registry = readDocumentedContract();
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

test('operations are in the order of use, under groups that the document explains', () => {
  const { paths, tags, info, servers } = described();
  const order = Object.values(paths).map((verbs) => Object.values(verbs)[0]?.tags[0]);
  const names = tags.map(({ name }) => name);
  assert.equal(names.slice(0, 3), ['Sessions', 'Labels', 'Functions']);
  assert.equal([...new Set(order)], names);
  assert.equal(
    order,
    order.toSorted((a, b) => names.indexOf(a ?? '') - names.indexOf(b ?? '')),
  );
  assert.is(Object.keys(paths)[0], '/v1/sessions');
  assert.match(info.version, /^\d+\.\d+\.\d+/);
  assert.equal(
    servers.map(({ url }) => url),
    ['/'],
  );
});

test('a summary is one sentence', () => {
  for (const verbs of Object.values(described().paths)) {
    for (const { summary } of Object.values(verbs))
      assert.match(summary, /^[A-Z][^.]*(?:\.\w[^.]*)*\.$/);
  }
});

test('each operation with a JSON body has an example, which the service accepts', async () => {
  await using app = await openUploads();
  const headers = { 'content-type': 'application/json', 'x-svc-api-key': CORE_KEY };
  const since = new Date(app.clock.now()).toISOString();
  const { id: keypairId } = await app.clients.secrets.getSecretsKeypair({}, app.asProject);
  const sessions = async () => (await app.call<object[]>('GET', '/v1/sessions')).json;
  for (const [path, verbs] of Object.entries(described().paths)) {
    for (const [verb, { requestBody }] of Object.entries(verbs)) {
      const content = requestBody?.content['application/json'];
      if (content === undefined) continue;
      const { example } = content;
      assert.ok(example, `${verb} ${path}`);
      const url = app.gateway.url + path.replaceAll(/\{\w+\}/g, newId());
      const own = Object.entries({ since, keypairId }).filter(([name]) => name in example);
      const body = JSON.stringify({ ...example, ...Object.fromEntries(own) });
      const leaving = new AbortController();
      const count = (await sessions()).length;
      const request = { method: verb.toUpperCase(), headers, body, signal: leaving.signal };
      const answer = fetch(url, request).then(({ status }) => status);
      // without a runner, a session that was accepted stays pending
      const accepted = async () => {
        await until(async () => (await sessions()).length > count);
        return 200;
      };
      const isCreated =
        /^\/v1\/(?:sessions(?:\/start)?|screenshot|pdf|content|links|markdown|fetch)$/.test(path);
      const status = await (isCreated ? Promise.race([answer, accepted()]) : answer);
      // no search engine is set
      assert.ok(
        [200, 201, 404, ...(path === '/v1/search' ? [501] : [])].includes(status),
        `${verb} ${path}: ${status}`,
      );
      leaving.abort();
      await answer.catch(() => undefined); // a request that was left
    }
  }
});

type Operation = {
  summary: string;
  tags: string[];
  requestBody?: { content: Record<string, { example?: object }> };
};
type Document = {
  info: { version: string };
  servers: { url: string }[];
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
};

function described(): Document {
  const registry = readDocumentedContract();
  return describe(registry, operationsOf(registry).filter(isPublished)) as Document;
}

/** Of every router that the application is made of. */
function routesOf(): [method: string, path: string][] {
  const app = openApp({
    clients: localClients(handlersOf({}), { onError: () => undefined }),
    gatewayToken: 'a-token',
    guard: openGuard(new BlockList()),
    publicUrl: undefined,
    log: openLog({ role: 'test', level: 'silent' }),
    draining: new AbortController().signal,
    leaving: new AbortController().signal,
    unready: new AbortController().signal,
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
