/**
 * `tabern upgrade`: a program that cannot take over leaves the running one as it is; signals, and
 * the end of the first process, end all of an upgraded service.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { suite } from 'uvu';
import { equal, is, match } from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { until } from '../../../support/poll.ts';
import { isRunning } from '../../../support/service/processes.ts';
import { boot } from '../../../support/service/stack.ts';
import { tempDirectory } from '../../../support/temp.ts';
import { sized } from '../../../support/whole.ts';
import { copyProgram } from './program-copy.ts';
import {
  read,
  release,
  running,
  type Session,
  startTypist,
  UPGRADE_LIMIT_MS,
  upgrade,
  upgradeTo,
} from './upgrading.ts';

const journey = suite('journey/operations/upgrade/ends');

journey('a program that cannot take over leaves the running one as it is', async () => {
  await using program = copyProgram();
  await using stack = await boot();
  await using typist = await startTypist(stack);
  const runner = await stack.runnerPid();
  const idFile = `${stack.dataDir}/keys/runner.id`;
  const id = readFileSync(idFile, 'utf8');
  const refuses = async (wanted: RegExp): Promise<void> => {
    const { code, said } = await upgrade(stack, program);
    is(code, 1, said);
    match(said, /not upgraded, the running program goes on: /);
    match(said, wanted);
    equal(running(program, ''), [], 'nothing is left of the new program');
    const session = await stack.call<Session>('/v1/sessions', { json: {} });
    await release(stack, session.id);
    is(await stack.runnerPid(), runner);
    is(readFileSync(idFile, 'utf8'), id, 'a restarted runner would be the same one');
    is((await read(stack, typist.id)).status, 'RUNNING');
  };
  const withEdit = async (file: string, change: { from: string; to: string }, wanted: RegExp) => {
    const undo = program.edit(file, change);
    await refuses(wanted);
    undo();
  };
  // before it takes over: it does not parse, its machine or its settings do not fit
  const check = 'gateway/cli/roles/check.ts';
  const whole = sized([], [
    ['core/main.ts', { from: 'export', to: 'export export' }, /Unexpected|export/],
    ['gateway/cli/roles/serve.ts', { from: 'config.drainS', to: 'nothing.drainS' }, /nothing/],
  ] as const);
  for (const [file, change, wanted] of whole) await withEdit(file, change, wanted);
  const sandbox = {
    from: 'const { checkMachine }',
    to: "throw new Exit(78, 'no sandbox'); const { checkMachine }",
  };
  await withEdit(check, sandbox, /no sandbox/);
  // after the running one gave up: its runner, its core
  const refusing = { from: 'await startTracing();', to: 'process.exit(78);' };
  await withEdit('runner/main.ts', refusing, /its runner cannot work/);
  const failing = {
    from: 'await using opened',
    to: "throw new Error('a wrong start'); await using opened",
  };
  await withEdit('core/main.ts', failing, /a wrong start/);
  await typist.stop();
  const db = new Database(`${stack.dataDir}/tabern.db`);
  db.prepare("INSERT INTO migrations (number, name) VALUES (9999, '9999_next.sql')").run();
  db.close();
  const { code, said } = await upgrade(stack, program);
  is(code, 1);
  match(said, /was written by a newer tabern; run that one/);
  is((await stack.fetch('/readyz')).status, 200);
});

journey('signals reach the newest process, and the second one ends all sessions', async () => {
  await using program = copyProgram();
  await using stack = await boot({ env: { TABERN_DRAIN_S: '600' } });
  const first = await stack.call<Session>('/v1/sessions', { json: { keepAlive: true } });
  await upgradeTo(stack, program, '9.1.0');
  const second = await stack.call<Session>('/v1/sessions', { json: { keepAlive: true } });
  const both = await Promise.all([upgrade(stack, program), upgrade(stack, program)]);
  equal(both.map(({ code }) => code).sort(), [0, 1], 'one after another');
  match(both.map(({ said }) => said).join(''), /goes on: another upgrade is in progress/);
  const { pid } = stack;
  process.kill(pid, 'SIGTERM');
  await until(async () => (await stack.fetch('/readyz')).status === 503);
  match((await upgrade(stack, program)).said, /goes on: the service drains or ends/);
  await release(stack, second.id);
  await until(async () => (await read(stack, second.id)).status === 'COMPLETED');
  is((await read(stack, first.id)).status, 'RUNNING', 'the drain waits for the old runner, too');
  const repeated = setInterval(() => isRunning(pid) && process.kill(pid, 'SIGTERM'), 700);
  await until(() => !isRunning(pid), UPGRADE_LIMIT_MS);
  clearInterval(repeated);
  equal(running(program, 'serve'), [], 'a further signal ends all of them together');
  // the runners notice it
  await until(() => running(program, '').length === 0, UPGRADE_LIMIT_MS);
  await stack.restart();
  is((await read(stack, first.id)).status, 'ERROR');
});

journey('a signal during an upgrade ends the service', async () => {
  await using program = copyProgram();
  await using stack = await boot();
  await upgradeTo(stack, program, '9.3.0');
  await stack.call<Session>('/v1/sessions', { json: { keepAlive: true } });
  const { pid } = stack;
  const answer = upgrade(stack, program);
  await until(() => running(program, 'serve').length === 2, UPGRADE_LIMIT_MS);
  process.kill(pid, 'SIGTERM');
  is((await answer).code, 1);
  await until(() => !isRunning(pid), UPGRADE_LIMIT_MS);
  await until(() => running(program, '').length === 0, UPGRADE_LIMIT_MS);
});

journey(
  'a drain that began while a newer program took over ends with the next signal',
  async () => {
    await using program = copyProgram();
    await using directory = tempDirectory('tabern-gate-');
    await using stack = await boot({ env: { TABERN_DRAIN_S: '600' } });
    await stack.call<Session>('/v1/sessions', { json: { keepAlive: true } });
    const [reached, open] = ['reached', 'open'].map((name) => join(directory.path, name));
    const held = `const { existsSync, writeFileSync } = await import('node:fs');
    writeFileSync('${reached}', '');
    while (!existsSync('${open}')) await new Promise((done) => setTimeout(done, 20));`;
    const opens = 'await using opened';
    program.edit('core/main.ts', { from: opens, to: `${held} ${opens}` });
    const { pid } = stack;
    const answer = upgrade(stack, program);
    await until(() => existsSync(must(reached, 'a path')), UPGRADE_LIMIT_MS);
    process.kill(pid, 'SIGTERM');
    await until(() => stack.logs().includes('"why":"SIGTERM"'));
    writeFileSync(must(open, 'a path'), '');
    is((await answer).code, 0);
    await until(() => stack.logs().includes('the first process of the service drains'));
    process.kill(pid, 'SIGTERM');
    await until(() => !isRunning(pid));
    equal(running(program, 'serve'), []);
    match(stack.logs(), /the newest process of the service has ended/);
    await until(() => running(program, '').length === 0, UPGRADE_LIMIT_MS);
  },
);

journey('the end of the first process ends all of the service', async () => {
  await using program = copyProgram();
  await using stack = await boot();
  await stack.call<Session>('/v1/sessions', { json: { keepAlive: true } });
  const idFile = `${stack.dataDir}/keys/runner.id`;
  const id = readFileSync(idFile, 'utf8');
  await upgradeTo(stack, program, '9.2.0');
  is.not(readFileSync(idFile, 'utf8'), id, 'the runner of the new program is another one');
  await stack.call<Session>('/v1/sessions', { json: { keepAlive: true } });
  await stack.kill('SIGKILL');
  await until(() => running(program, '').length === 0, UPGRADE_LIMIT_MS);
  await stack.restart();
  await until(async () => (await stack.fetch('/readyz')).ok);
});

journey.run();
