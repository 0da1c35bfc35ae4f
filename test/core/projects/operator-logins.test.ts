/** Operator logins of the console: how they are made, what they may call, what ends them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readCoreConfig } from '../../../core/config.ts';
import { type Core, startCore } from '../../../core/main.ts';
import { openLog } from '../../../proto/common/log.ts';
import { must } from '../../../proto/common/must.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { faultOf } from '../../support/fault.ts';
import { tempDirectory } from '../../support/temp.ts';
import { type Booted, boot, KEY } from '../boot.ts';

const test = suite('core/projects/operator-logins');

const byLogin = (text: string, project?: string): CallOptions => ({
  metadata: { 'x-console-login': text, ...(project && { 'x-console-project': project }) },
});

type Of = Pick<Booted, 'clients' | 'asGateway' | 'asOperator'>;

async function logIn({ clients, asGateway, asOperator }: Of): Promise<string> {
  const { code } = await clients.operators.createOperatorCode({}, asOperator);
  return await useCode({ clients, asGateway }, code);
}

async function useCode({ clients, asGateway }: Omit<Of, 'asOperator'>, code: string) {
  const credential = { $case: 'code', value: code } as const;
  const wanted = { credential, client: '192.0.2.1' };
  return (await clients.consoleLogins.createConsoleLogin(wanted, asGateway)).text;
}

async function otherProject({ clients, asOperator }: Booted) {
  const made = await clients.operators.createProject({ name: 'other', limits: {} }, asOperator);
  return must(made.project?.project, 'a project');
}

test('a code of the operator token makes one operator login, within 60 s', async () => {
  await using app = await boot();
  const { clients, asGateway, asOperator } = app;
  const { code } = await clients.operators.createOperatorCode({}, asOperator);
  const text = await useCode(app, code);
  const { login } = await clients.consoleLogins.getConsoleLogin({ text, use: true }, asGateway);
  assert.equal([login?.isOperator, login?.projectId, login?.keyId], [true, '', undefined]);
  assert.is((await faultOf(useCode(app, code))).reason, 'API_KEY_INVALID');

  const late = await clients.operators.createOperatorCode({}, asOperator);
  app.clock.advance(60_000);
  const fault = await faultOf(useCode(app, late.code));
  assert.is(fault.message, 'The link has expired or was used already. Run `tabern console` again.');
});

test('no key, project code, login or other token makes an operator login', async () => {
  await using app = await boot();
  const { clients, asGateway, asProject, asRunner } = app;
  const { code } = await clients.operators.createConsoleCode(
    { project: 'default' },
    app.asOperator,
  );
  const texts = [await useCode(app, code)];
  const token = must(app.asOperator.metadata?.['authorization'], 'a token').slice('Bearer '.length);
  const byKey = (value: string) => {
    const credential = { $case: 'apiKey', value } as const;
    return clients.consoleLogins.createConsoleLogin({ credential, client: 'x' }, asGateway);
  };
  texts.push((await byKey(KEY)).text);
  assert.is((await faultOf(byKey(token))).reason, 'API_KEY_INVALID', 'the token is no key');
  for (const text of texts) {
    const { login } = await clients.consoleLogins.getConsoleLogin({ text, use: true }, asGateway);
    assert.is(login?.isOperator, false);
    const listed = clients.operators.listAllProjects({}, byLogin(text));
    assert.is((await faultOf(listed)).reason, 'TOKEN_REQUIRED');
  }
  const callers = [asProject, asRunner, asGateway, byLogin(await logIn(app))];
  for (const caller of [...callers, ...texts.map((text) => byLogin(text))]) {
    const made = clients.operators.createOperatorCode({}, caller);
    assert.is((await faultOf(made)).reason, 'TOKEN_REQUIRED', JSON.stringify(caller));
  }
});

test('an operator login makes no other login and takes no master key', async () => {
  await using app = await boot();
  const { operators } = app.clients;
  const caller = byLogin(await logIn(app));
  assert.is((await operators.listAllProjects({}, caller)).projects.length, 1);
  const code = operators.createConsoleCode({ project: 'default' }, caller);
  assert.is((await faultOf(code)).reason, 'TOKEN_REQUIRED');
  const take = async (withMasterKey: boolean) => {
    let bytes = 0;
    for await (const { part } of operators.createBackup({ withMasterKey }, caller)) {
      bytes += part?.$case === 'chunk' ? part.value.length : 0;
    }
    return bytes;
  };
  assert.is((await faultOf(take(true))).reason, 'TOKEN_REQUIRED');
  assert.ok((await take(false)) > 1_000);
});

test('an operator login names a project, and then sees that one and no other', async () => {
  await using app = await boot();
  const { clients } = app;
  const other = await otherProject(app);
  const text = await logIn(app);
  const { id } = await clients.contexts.createContext({ name: 'x' }, byLogin(text, other.id));
  const seen = await clients.projects.listProjects({}, byLogin(text, other.id));
  assert.equal(
    seen.projects.map((one) => one.name),
    ['other'],
  );
  const foreign = await faultOf(clients.contexts.getContext({ id }, app.asProject));
  assert.is(foreign.reason, 'RESOURCE_NOT_FOUND', 'the context is of the named project');
  const asOther = clients.operators.listAllProjects({}, byLogin(text, other.id));
  assert.is((await faultOf(asOther)).reason, 'TOKEN_REQUIRED', 'as a project it is no operator');
  const unnamed = await faultOf(clients.projects.listProjects({}, byLogin(text)));
  assert.is(unnamed.reason, 'PROJECT_MISMATCH');
  const missing = { ...byLogin(text, '01a1fce4-ed84-7600-895f-0cf6ab39edc7') };
  assert.is(
    (await faultOf(clients.projects.listProjects({}, missing))).reason,
    'RESOURCE_NOT_FOUND',
  );
});

test('a named project is refused with every other credential, its own one too', async () => {
  await using app = await boot();
  const { clients, asProject, asOperator, asRunner, asGateway } = app;
  const other = await otherProject(app);
  const [own] = (await clients.projects.listProjects({}, asProject)).projects;
  const { code } = await clients.operators.createConsoleCode({ project: 'default' }, asOperator);
  const login = byLogin(await useCode(app, code));
  for (const credential of [asProject, login, asOperator, asRunner, asGateway]) {
    for (const named of [other.id, must(own, 'a project').id, 'none']) {
      const metadata = { ...credential.metadata, 'x-console-project': named };
      const fault = await faultOf(clients.projects.listProjects({}, { metadata }));
      assert.is(fault.reason, 'TOKEN_REQUIRED', JSON.stringify(metadata));
    }
  }
  const none = { metadata: { 'x-console-project': other.id } };
  assert.is((await faultOf(clients.projects.listProjects({}, none))).reason, 'API_KEY_MISSING');
});

test('an operator login ends by a logout, and 12 hours after its last use', async () => {
  await using app = await boot();
  const { clients, asGateway } = app;
  const [left, old] = [await logIn(app), await logIn(app)];
  await clients.consoleLogins.deleteConsoleLogin({ text: left }, asGateway);
  const ended = clients.operators.listAllProjects({}, byLogin(left));
  assert.is((await faultOf(ended)).reason, 'API_KEY_INVALID');
  app.clock.advance(11 * 3_600_000);
  await clients.operators.listAllProjects({}, byLogin(old));
  app.clock.advance(12 * 3_600_000);
  const late = clients.operators.listAllProjects({}, byLogin(old));
  assert.is((await faultOf(late)).reason, 'API_KEY_INVALID');
});

test('another operator token ends the operator logins, and no others', async () => {
  await using temp = tempDirectory();
  const env = { TABERN_DATA: temp.path, TABERN_API_KEY: KEY, TABERN_KEY_PAIRS: '0' };
  const log = openLog({ role: 'core', level: 'silent' });
  const file = (name: string) => join(temp.path, 'keys', `${name}.token`);
  const bearer = (name: string) => {
    const token = readFileSync(file(name), 'utf8').trim();
    return { metadata: { authorization: `Bearer ${token}` } };
  };
  const started = async () => {
    const core: Core = await startCore(readCoreConfig(env), log);
    const callers = { asGateway: bearer('gateway'), asOperator: bearer('operator') };
    return { core, clients: core.clients, ...callers };
  };
  const first = await started();
  const text = await logIn(first);
  const { code } = await first.clients.operators.createConsoleCode(
    { project: 'default' },
    first.asOperator,
  );
  const ofProject = await useCode(first, code);
  await first.core.close();

  const same = await started();
  assert.is((await same.clients.operators.listAllProjects({}, byLogin(text))).projects.length, 1);
  await same.core.close();

  writeFileSync(file('operator'), `${'b'.repeat(43)}\n`);
  const rotated = await started();
  const { clients } = rotated;
  const ended = clients.operators.listAllProjects({}, byLogin(text));
  assert.is((await faultOf(ended)).reason, 'API_KEY_INVALID');
  assert.is((await clients.projects.listProjects({}, byLogin(ofProject))).projects.length, 1);
  await rotated.core.close();
});

test.run();
