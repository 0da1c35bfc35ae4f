/** The audit: which calls are recorded, what an event has, who reads it, when it is removed. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isChange, openAudit } from '../../../core/api/audit.ts';
import { guarded, onlyProjects } from '../../../core/api/interceptors.ts';
import { newId } from '../../../core/common/ids.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import type { AuditEvent } from '../../../proto/gen/tabern/v1/operator_console.pb.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { SERVICES } from '../../../proto/rpc/services.ts';
import { sealedFor } from '../../support/clients/seal.ts';
import { purgeAt } from '../../support/core/retention.ts';
import { faultOf } from '../../support/fault.ts';
import { until } from '../../support/poll.ts';
import { type Booted, boot, KEY } from '../boot.ts';
import { ENGINES, openBench, T0 } from '../store/engines.ts';

const test = suite('core/projects/audit');

const DAY_MS = 86_400_000;
const ADDRESS = '192.0.2.7';
const ANY_TIME = { from: undefined, to: undefined };
const READS = ['list', 'get', 'count', 'search', 'watch', 'read', 'find'];

const byLogin = (text: string, project?: string): CallOptions => ({
  metadata: {
    'x-console-login': text,
    'x-console-address': ADDRESS,
    ...(project && { 'x-console-project': project }),
  },
});

async function logIn(
  { clients, asGateway, asOperator }: Booted,
  kind: 'key' | 'code' | 'operator',
) {
  const { operators } = clients;
  const code = async () =>
    kind === 'operator'
      ? (await operators.createOperatorCode({}, asOperator)).code
      : (await operators.createConsoleCode({ project: 'default' }, asOperator)).code;
  const credential =
    kind === 'key'
      ? ({ $case: 'apiKey', value: KEY } as const)
      : ({ $case: 'code', value: await code() } as const);
  const wanted = { credential, client: ADDRESS };
  return (await clients.consoleLogins.createConsoleLogin(wanted, asGateway)).text;
}

async function eventsOf({ clients }: Booted, caller: CallOptions, text?: string) {
  return (await clients.audit.listAuditEvents({ text, ...ANY_TIME }, caller)).events;
}

const shown = ({ operation, login, outcome, objectId }: AuditEvent) => {
  return [operation, login, outcome, objectId];
};

test('a change by a login is an event with who, what, where from and the outcome', async () => {
  await using app = await boot();
  const { clients, asProject } = app;
  const [project] = (await clients.projects.listProjects({}, asProject)).projects;
  const text = await logIn(app, 'key');
  const made = await clients.contexts.createContext({ name: 'very private name' }, byLogin(text));
  const missing = '01a1fce4-ed84-7600-895f-0cf6ab39edc7';
  await faultOf(clients.contexts.deleteContext({ id: missing }, byLogin(text)));
  await clients.contexts.deleteContext({ id: made.id }, byLogin(await logIn(app, 'code')));

  const events = await eventsOf(app, asProject);
  assert.equal(events.map(shown), [
    ['deleteContext', 'code', 'OK', made.id],
    ['deleteContext', 'key', 'RESOURCE_NOT_FOUND', missing],
    ['createContext', 'key', 'OK', made.id],
  ]);
  const [newest, , oldest] = events;
  assert.match(oldest?.keyId ?? '', /^[a-z0-9]{8}$/);
  assert.is(newest?.keyId, undefined);
  for (const { address, projectId, projectName, createdAt } of events) {
    assert.equal([address, projectId, projectName], [ADDRESS, project?.id, 'default']);
    assert.is(createdAt?.getTime(), app.clock.now());
  }
  assert.not.match(JSON.stringify(events), /very private name/);
});

test('changes of secrets are events with their ids, without a name or a value', async () => {
  await using app = await boot();
  const { secrets } = app.clients;
  const caller = byLogin(await logIn(app, 'code'));
  const functionId = await app.publish({ name: 'f' });
  const pair = await secrets.getSecretsKeypair({}, caller);
  const sealed = sealedFor(pair, 'a value that is marked');
  const { secret } = await secrets.createSecret({ secretKey: 'MARKED_NAME', ...sealed }, caller);
  const id = must(secret, 'a secret').id;
  await secrets.updateSecret({ id, ...sealed }, caller);
  await secrets.attachSecret({ functionId, secretId: id }, caller);
  await secrets.detachSecret({ functionId, secretId: id }, caller);
  await secrets.deleteSecret({ id }, caller);
  await faultOf(secrets.updateSecret({ id, ...sealed }, caller));

  const events = await eventsOf(app, app.asProject);
  assert.equal(events.map(shown), [
    ['updateSecret', 'code', 'RESOURCE_NOT_FOUND', id],
    ['deleteSecret', 'code', 'OK', id],
    ['detachSecret', 'code', 'OK', functionId],
    ['attachSecret', 'code', 'OK', functionId],
    ['updateSecret', 'code', 'OK', id],
    ['createSecret', 'code', 'OK', id],
  ]);
  const text = JSON.stringify(events);
  for (const part of ['MARKED_NAME', 'marked', sealed.sealedSecretValue])
    assert.not.ok(text.includes(part));
});

test('reads by a login, and changes by an API key or the token, are no events', async () => {
  await using app = await boot();
  const { clients, asProject, asOperator } = app;
  const text = await logIn(app, 'code');
  await clients.contexts.createContext({ name: 'x' }, asProject);
  await clients.operators.createProject({ name: 'other', limits: {} }, asOperator);
  await clients.projects.listProjects({}, byLogin(text));
  await clients.console.listSessions(ANY_TIME, byLogin(text));
  await clients.audit.listAuditEvents(ANY_TIME, byLogin(text));
  assert.equal(await eventsOf(app, asOperator), []);
});

test('the operator reads all events, a project its own, also those of the operator', async () => {
  await using app = await boot();
  const { clients, asProject, asOperator } = app;
  const operator = await logIn(app, 'operator');
  const caller = byLogin(operator);
  const { operators } = clients;
  const { project } = await operators.createProject({ name: 'other', limits: {} }, caller);
  const other = must(project?.project, 'a project').id;
  const limits = { project: 'default', limits: { sessions: 3 } };
  await operators.setProjectLimits(limits, caller);
  const { apiKey, key } = await operators.createApiKey({ project: 'other', name: 'ci' }, caller);
  const keyId = must(apiKey, 'a key').id;
  await operators.revokeApiKey({ id: keyId }, caller);
  await clients.contexts.createContext({ name: 'x' }, byLogin(operator, other));
  await faultOf(clients.operators.createConsoleCode({ project: 'default' }, caller));

  const all = await eventsOf(app, asOperator);
  const operations = [
    ...['createConsoleCode', 'createContext', 'revokeApiKey', 'createApiKey'],
    ...['setProjectLimits', 'createProject'],
  ];
  assert.equal(
    all.map(({ operation }) => operation),
    operations,
  );
  assert.is(all[0]?.outcome, 'TOKEN_REQUIRED', 'a refused change is an event');
  assert.ok(all.every(({ login }) => login === 'operator'));
  assert.not.ok(JSON.stringify(all).includes(key));
  const own = await eventsOf(app, byLogin(operator, other));
  assert.equal(own.map(({ operation, objectId }) => [operation, objectId]).slice(1), [
    ['revokeApiKey', keyId],
    ['createApiKey', keyId],
    ['createProject', other],
  ]);
  assert.equal(
    (await eventsOf(app, asProject)).map(({ operation }) => operation),
    ['setProjectLimits'],
  );
  assert.equal((await eventsOf(app, caller, 'revoke')).map(shown).length, 1, 'a filter');
});

test('a list goes on by its cursor, which is of one project', async () => {
  await using app = await boot();
  const caller = byLogin(await logIn(app, 'code'));
  for (const name of ['a', 'b', 'c']) await app.clients.contexts.createContext({ name }, caller);
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await app.clients.audit.listAuditEvents(
      { limit: 1, cursor, ...ANY_TIME },
      app.asProject,
    );
    seen.push(...page.events.map(({ id }) => id));
    if (cursor === undefined) {
      const foreign = { limit: 1, cursor: page.nextCursor, ...ANY_TIME };
      const fault = await faultOf(app.clients.audit.listAuditEvents(foreign, app.asOperator));
      assert.is(fault.reason, 'INVALID_CURSOR');
    }
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  assert.is(new Set(seen).size, 3);
});

test('events are removed when they are older than their days, and no others', async () => {
  await using bench = await openBench(must(ENGINES[0], 'an engine'));
  const { store } = bench;
  const projectId = await bench.project('a');
  const by = { login: 'code', keyId: null, address: ADDRESS } as const;
  for (const at of [T0, T0 + DAY_MS]) {
    const of = { id: newId(at), operation: 'createContext', objectId: null, projectId };
    await store.addAuditEvent({ ...of, ...by, at });
  }
  const keptMs = { 'audit events': 2 * DAY_MS };
  const left = async (days: number) => {
    await purgeAt(T0 + days * DAY_MS, ['audit events'], { store, keptMs });
    const all = { isOfAll: true, projectId: '', from: 0, to: Number.MAX_SAFE_INTEGER, limit: 9 };
    return (await store.auditEvents(all)).rows.length;
  };
  assert.equal([await left(2), await left(2.5), await left(3.5)], [2, 1, 0]);
});

test('only projects and the operator read the audit', async () => {
  await using app = await boot();
  for (const caller of [app.asRunner, app.asGateway]) {
    const fault = await faultOf(app.clients.audit.listAuditEvents(ANY_TIME, caller));
    assert.is(fault.reason, 'API_KEY_MISSING');
  }
});

test('a backup is an event, and one that its reader leaves was cancelled', async () => {
  await using app = await boot();
  const caller = byLogin(await logIn(app, 'operator'));
  const backup = () => app.clients.operators.createBackup({ withMasterKey: false }, caller);
  for await (const _ of backup());
  for await (const _ of backup()) break;
  await until(async () => (await eventsOf(app, caller)).every(({ outcome }) => outcome));
  const outcomes = (await eventsOf(app, caller)).map(({ operation, outcome }) => [
    operation,
    outcome,
  ]);
  assert.equal(outcomes, [
    ['createBackup', 'CANCELLED'],
    ['createBackup', 'OK'],
  ]);
});

test('a change is refused, and not made, when its event cannot be stored', async () => {
  const full = new Error('the disk is full');
  const store = { addAuditEvent: () => Promise.reject(full), endAuditEvent: async () => undefined };
  const audit = openAudit({ store, now: () => 0, log: openLog({ role: 'core', level: 'silent' }) });
  const who = { kind: 'project', projectId: 'p', login: { kind: 'code' } } as const;
  let isMade = false;
  const handlers = guarded(
    { deleteContext: SERVICES.contexts.deleteContext },
    {
      async deleteContext() {
        isMade = true;
        return {};
      },
    },
    {
      authenticate: async () => who,
      enterCall: () => ({ [Symbol.dispose]: () => undefined }),
      admit: onlyProjects,
      entered: () => undefined,
      audit,
    },
  );
  const call = { signal: new AbortController().signal, deadline: 0, metadata: {} };
  let failure: unknown;
  await handlers.deleteContext({ id: 'x' }, call).catch((error: unknown) => {
    failure = error;
  });
  assert.equal([failure, isMade], [full, false]);
});

test('each RPC that changes something is recorded, by its name', () => {
  const names = [SERVICES.operators, SERVICES.console, SERVICES.sessions, SERVICES.webhooks]
    .flatMap((service) => Object.keys(service))
    .filter((name) => READS.some((verb) => name.startsWith(verb)));
  assert.ok(names.length > 20);
  assert.equal(names.filter(isChange), []);
  for (const name of ['createBackup', 'revokeApiKey', 'updateSession', 'getaway', 'testWebhook']) {
    assert.ok(isChange(name), name);
  }
});

test('a flood of changes by the logins of a project ends without events', async () => {
  const added: string[] = [];
  let at = T0;
  const audit = openAudit({
    store: {
      addAuditEvent: async ({ id }) => void added.push(id),
      endAuditEvent: async () => undefined,
    },
    now: () => at,
    log: openLog({ role: 'test', level: 'silent' }),
  });
  const change = (projectId: string, kind: 'code' | 'operator') => {
    const who = { kind: 'project', projectId, login: { kind } } as const;
    const call = { metadata: {}, signal: new AbortController().signal, deadline: 0 };
    return audit({ who, name: 'deleteContext', request: {}, call });
  };
  for (let made = 0; made < 1_000; made += 1) await change('a', 'code');
  assert.is((await faultOf(change('a', 'code'))).reason, 'RATE_LIMIT');
  assert.is(added.length, 1_000);
  await change('b', 'code');
  await change('a', 'operator');
  at += 60_000;
  await change('a', 'code');
  assert.is(added.length, 1_003);
});

test.run();
