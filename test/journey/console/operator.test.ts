/**
 * The operator at the console, in a real browser: logs in by the link of `tabern console
 * --operator`, sees all projects, sets limits, makes and revokes a key, opens the pages of another
 * project, and downloads a backup that a restore accepts.
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import {
  logIn,
  openConsole,
  type Person,
  rowsOf,
  seriousDefects,
  untilText,
} from '../../support/clients/console.ts';
import { until } from '../../support/poll.ts';
import { operatorOf } from '../../support/service/operator.ts';
import { shareStack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const test = suite('journey/console/operator');

const LAUNCHER = new URL('../../../gateway/tabern.js', import.meta.url).pathname;
/** Markup, and marks that reorder and hide. */
const HOSTILE = '<img src=x onerror=alert(1)>\u202eevil\u200b';
const shared = shareStack();
let person: Person | undefined;
let otherId = '';
let code = '';

const at = (name: string) => must(person, name);

test('the link of the operator logs in, and shows all projects', async () => {
  const stack = await shared.get();
  using operator = operatorOf(stack.dataDir);
  const { operators, options } = operator;
  const wanted = { name: HOSTILE, limits: {} };
  const { project } = await operators.createProject(wanted, options);
  otherId = must(project?.project, 'a project').id;
  code = (await operators.createOperatorCode({}, options)).code;
  person = await openConsole(stack, `/console/login#code=${code}`);
  await untilText(person.page, 'h1', 'Projects');
  await untilText(person.page, 'tbody', 'default');
  const rows = await rowsOf(person.page);
  assert.is(rows.length, 2);
  assert.ok(
    rows.some((row) => row.includes('<img src=x onerror=alert(1)>')),
    'its name is text',
  );
  assert.is(await person.page.locator('tbody img').count(), 0);
  assert.not.ok((await person.page.content()).includes('\u202e'));
});

test('limits are set, and a wrong one names its field', async () => {
  const { page } = at('a person');
  await page.locator('a.row-link', { hasText: 'default' }).click();
  await page.locator('#limit-sessions').fill('0');
  await page.getByRole('button', { name: 'Set limits' }).click();
  await untilText(page, '[role=alert]', '`sessions` must be 1 to');
  await page.locator('#limit-sessions').fill('7');
  await page.getByRole('button', { name: 'Set limits' }).click();
  await untilText(page, '.notice', 'The limits are set.');
  await page.reload();
  await page.locator('#limit-sessions').waitFor();
  assert.is(await page.locator('#limit-sessions').inputValue(), '7');
});

test('a key is shown once, works, and is refused when it is revoked', async () => {
  const stack = await shared.get();
  const { page } = at('a person');
  await page.locator('input[name=name]').fill('ci');
  await page.getByRole('button', { name: 'Make a key' }).click();
  const key = (await page.locator('dialog pre').innerText()).trim();
  const status = async () => {
    const headers = { 'x-svc-api-key': key };
    return (await fetch(`${stack.url}/v1/projects`, { headers })).status;
  };
  assert.is(await status(), 200);
  await page.getByRole('button', { name: 'I have copied it' }).click();
  assert.not.ok((await page.content()).includes(key));
  await page.getByRole('button', { name: `Revoke ${key.split('_')[1]}` }).click();
  await page.locator('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
  await until(async () => (await status()) === 401);
});

test('the switcher opens another project, whose pages work as they are', async () => {
  const stack = await shared.get();
  const { page } = at('a person');
  const body = JSON.stringify({ projectId: stack.projectId, keepAlive: true });
  const headers = { 'x-svc-api-key': stack.apiKey, 'content-type': 'application/json' };
  const made = await fetch(`${stack.url}/v1/sessions`, { method: 'POST', headers, body });
  const { id } = (await made.json()) as { id: string };
  await page.locator('.switch').click();
  await page.locator('dialog input').fill('defa');
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/console/p/${stack.projectId}`);
  await untilText(page, '.bar', 'Live');
  await page.locator('.rail a', { hasText: 'Sessions' }).first().click();
  await untilText(page, 'tbody', 'Running');
  await page.locator('.row-link').first().click();
  await page.waitForURL(`**/sessions/${id}*`);
  await page.locator('iframe').waitFor();
  await page.locator('.switch').click();
  await page.locator('dialog input').fill('evil');
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/console/p/${otherId}`);
  await page.locator('.rail a', { hasText: 'Sessions' }).first().click();
  await untilText(page, '#page', 'curl -X POST');
  assert.is(await page.locator('tbody tr').count(), 0, 'it has no session of the other project');
});

test('all sessions, runners, queues and events are shown, and a session is released', async () => {
  const { page } = at('a person');
  await page.goto(`${(await shared.get()).url}/console/operator/sessions?state=open`);
  await untilText(page, 'tbody', 'default');
  await page.getByRole('button', { name: /^Release / }).click();
  await untilText(page, '.notice', 'The session ends.');
  await page.locator('.rail a', { hasText: 'Runners' }).click();
  await untilText(page, 'tbody', 'Present');
  await untilText(page, 'tbody', 'Chrome/');
  await page.locator('.rail a', { hasText: 'Queues' }).click();
  await untilText(page, '#page', 'served next');
  await page.locator('.rail a', { hasText: 'Events' }).click();
  await untilText(page, 'tbody', 'revokeApiKey');
  const rows = await rowsOf(page);
  for (const operation of ['setProjectLimits', 'createApiKey', 'updateSession']) {
    assert.ok(
      rows.some((row) => row.includes(operation) && row.includes('127.0.0.1')),
      operation,
    );
  }
  assert.ok(rows.some((row) => row.includes('INVALID_FIELD')));
});

test('the doctor finds a fit service', async () => {
  const { page } = at('a person');
  await page.locator('.rail a', { hasText: 'Doctor' }).click();
  await page.getByRole('button', { name: 'Check now' }).click();
  await page.locator('table[aria-label=Findings]').waitFor({ timeout: 90_000 });
  const findings = (await rowsOf(page)).join('\n');
  assert.match(findings, /Fit\s+database/);
  assert.not.match(findings, /^Failed/m);
});

test('a backup is a file that a restore accepts', async () => {
  const { page } = at('a person');
  await using dir = tempDirectory();
  await page.locator('.rail a', { hasText: 'Backup' }).click();
  const link = page.getByRole('link', { name: 'Download a backup' });
  assert.is(await link.getAttribute('href'), '/console/api/v1/operator/backup');
  const code = `fetch('/console/api/v1/operator/backup').then(async (answer) => {
    const bytes = new Uint8Array(await answer.arrayBuffer());
    let text = '';
    for (let n = 0; n < bytes.length; n += 32768) {
      text += String.fromCharCode(...bytes.subarray(n, n + 32768));
    }
    return [answer.headers.get('content-disposition'), btoa(text)];
  })`;
  const [disposition, base64] = await page.evaluate<[string, string]>(code);
  assert.is(disposition, 'attachment; filename="tabern-backup.tar"');
  const file = join(dir.path, 'backup.tar');
  writeFileSync(file, Buffer.from(base64, 'base64'));
  const target = join(dir.path, 'restored');
  const stack = await shared.get();
  const key = join(stack.dataDir, 'keys', 'master.key');
  const words = ['restore', file, '--data', target, '--master-key', key];
  execFileSync(process.execPath, [LAUNCHER, ...words], { stdio: 'pipe' });
});

test('each page has no serious defect in both themes', async () => {
  const { page } = at('a person');
  const { url } = await shared.get();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const path of [
      ...['', '/sessions', '/runners', '/queues', '/events', '/doctor', '/backup'],
      `/projects/${otherId}`,
    ]) {
      await page.goto(`${url}/console/operator${path}`);
      await page.locator('h1').waitFor();
      assert.equal(await seriousDefects(page), [], `${colorScheme} ${path}`);
    }
    await page.locator('.switch').click();
    assert.equal(await seriousDefects(page), [], `${colorScheme} switcher`);
  }
});

test('unknown pages and projects are one clear sentence', async () => {
  const { page } = at('a person');
  const { url } = await shared.get();
  await page.goto(`${url}/console/operator/none`);
  await untilText(page, '#page', 'There is no such page.');
  await page.goto(`${url}/console/operator/projects/none`);
  await untilText(page, '#page', 'There is no project with this id.');
  await page.goto(`${url}/console/p/01a1fce4-ed84-7600-895f-0cf6ab39edc7`);
  await untilText(page, '#page', 'Project not found.');
});

test('a used link says so, and a logout ends the login', async () => {
  const { page } = at('a person');
  const { url } = await shared.get();
  await page.goto(`${url}/console/operator`);
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.locator('#key').waitFor();
  await page.goto('about:blank');
  await page.goto(`${url}/console/login#code=${code}`);
  await untilText(page, '#app', 'The link has expired or was used already.');
  const refused = /status of 400/; // the limit that was wrong
  assert.equal(
    must(person, 'a person').faults.filter((fault) => !refused.test(fault)),
    [],
  );
  await must(person, 'a person')[Symbol.asyncDispose]();
});

test('a login of a project sees its own project only', async () => {
  const stack = await shared.get();
  await using someone = await openConsole(stack);
  await logIn(someone, stack);
  assert.is(await someone.page.locator('.switch').count(), 0);
  await someone.page.goto(`${stack.url}/console/operator`);
  await untilText(someone.page, '#page', 'This address belongs to another project');
  await someone.page.goto(`${stack.url}/console/p/${stack.projectId}/audit`);
  await untilText(someone.page, '#page', 'setProjectLimits');
  assert.equal(someone.faults, []);
});

test('the service ends', () => shared.end());

test.run();
