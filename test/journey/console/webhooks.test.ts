/**
 * Webhooks in the console, with a real https receiver: create one, see why a delivery failed, send
 * it again, rotate, verify a signature, enable and recover, delete. A receiver's bytes are text.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { Webhook as Verifier } from 'standardwebhooks';
import { suite } from 'uvu';
import { equal, is, match } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import {
  logIn,
  openConsole,
  type Person,
  rowsOf,
  seriousDefects,
  untilText,
} from '../../support/clients/console.ts';
import { invoke, publish } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { type Received, startReceiver } from '../../support/servers/receiver.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/console/webhooks');

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const MARKUP = '<img src=x onerror=alert(1)>';
const BIDI = 'invoice\u202egnp.exe';
const HOUR_MS = 3_600_000;
const HEADERS = ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const;

journey('a webhook is created, explained, mended and deleted by a person', async () => {
  await using receiver = await startReceiver();
  await using stack = await boot({ webhookCa: receiver.caPath });
  const functionId = must((await publish(stack))['trivial'], 'the function');
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  const failing = { stack, functionId, receiver };
  await page.keyboard.press('g');
  await page.keyboard.press('w');
  await emptyPageIsUseful(page, stack);
  const secret = await createWebhook(page, `${receiver.url}/hook`);
  await page.waitForURL(/\/webhooks\/[0-9a-f-]{36}$/);
  const webhookUrl = page.url();
  await page.getByRole('button', { name: 'Send a test' }).click();
  await untilText(page, 'tbody', 'webhooks.test');
  await untilText(page, 'tbody', 'Delivered');
  equal(await defectsInBoth(person), []);
  await failureIsSentAgain(person, failing);
  await page.goto(webhookUrl);
  await todayIsChosen(page);
  await signaturesAreExplained(person, must(receiver.requests.at(-1), 'request'), secret);
  await secretIsRotated(page, receiver, secret);
  await disabledIsMended(person, failing);
  for (const foreign of [`${webhookUrl}?d=${crypto.randomUUID()}`, otherId(webhookUrl)]) {
    await page.goto(foreign);
    await page.locator('[role=alert]').waitFor();
  }
  await listIsReadable(person, webhookUrl);
  await webhookIsDeleted(page, webhookUrl, receiver.url);
  equal((await stack.call<{ data: unknown[] }>('/v1/webhooks')).data, []);
  equal(person.faults, []);
});

journey.run();

async function emptyPageIsUseful(page: Page, { url }: Stack): Promise<void> {
  await untilText(page, '.empty', 'No webhook yet.');
  await untilText(page, '.empty pre', `${url}/v1/webhooks`);
  await receiverWorks(must((await page.locator('.empty pre').allInnerTexts())[1], 'the receiver'));
}

/** Two attempts fail; the page shows them, and sends the delivery again. */
async function failureIsSentAgain(
  person: Person,
  { stack, functionId, receiver }: Failing,
): Promise<void> {
  const { page } = person;
  receiver.script(
    (response) => response.writeHead(500, {}).end(`${MARKUP}\n${BIDI}`),
    (response) => refuse(response, `${MARKUP}${'x'.repeat(6_000)}`),
  );
  const { id } = await invoke(stack, functionId);
  await untilText(page, 'tbody', 'Given up');
  await untilText(page, '.health', '2 failed');
  await untilText(page, '.health', '1 lost');
  await page.locator('tbody a', { hasText: 'Given up' }).click();
  await attemptsAreShown(person, receiver.requests, id);
  await page.keyboard.press('r');
  await untilText(page, '.session-head', 'Delivered');
  await untilText(page, 'tbody', 'sent by a person');
  const sent = must(receiver.requests.at(-1), 'the request');
  is(await page.locator('#body').innerText(), sent.body.toString());
  equal(await headersOn(page), headersOf(sent));
}

/** The day has its counts, and shows its events by keys alone. */
async function todayIsChosen(page: Page): Promise<void> {
  const today = page.locator('.health li:last-child button');
  const counts = /deliveries lost. 1 delivered, 2 attempts failed, 1 lost/;
  await until(async () => counts.test(`${await today.getAttribute('aria-label')}`));
  await today.focus();
  await page.keyboard.press('Enter');
  await page.waitForURL(/day=\d{4}-\d\d-\d\d/);
  await until(async () => (await rowsOf(page)).length === 2);
}

/** Both secrets sign after it, and the new one is the newest. */
async function secretIsRotated(
  page: Page,
  receiver: Failing['receiver'],
  secret: string,
): Promise<void> {
  const rotated = await rotateSecret(page);
  is(rotated === secret, false);
  await page.getByRole('button', { name: 'Send a test' }).click();
  const signed = await receiver.received(({ headers }) => signaturesOf(headers).length === 2);
  new Verifier(secret).verify(signed.body, textsOf(signed));
  new Verifier(rotated).verify(signed.body, textsOf(signed));
  await verify(page, signed, {});
  await untilText(page, '.verified', 'A receiver accepts it');
  await untilText(page, '.verified', 'which is the newest');
  await page.keyboard.press('Escape');
}

function otherId(webhookUrl: string): string {
  return webhookUrl.replace(/[^/]+$/, crypto.randomUUID());
}

async function listIsReadable(person: Person, webhookUrl: string): Promise<void> {
  const { page } = person;
  await page.goto(webhookUrl.replace(/\/[^/]+$/, ''));
  const strip = page.locator('.endpoints [role=img]');
  match(must(await strip.getAttribute('aria-label'), 'label'), /^14 days: 3 delivered/);
  equal(await defectsInBoth(person), []);
  await page.setViewportSize({ width: 390, height: 844 });
  is(await isWide(page), false, 'the list is wider than a phone');
}

async function webhookIsDeleted(page: Page, webhookUrl: string, endpoint: string): Promise<void> {
  await page.goto(webhookUrl);
  await page.locator('.health button').first().waitFor();
  is(await isWide(page), false, 'the webhook is wider than a phone');
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByLabel('Host of the endpoint').fill('other.example');
  is(await page.getByRole('button', { name: 'Delete', exact: true }).isDisabled(), true);
  await page.getByLabel('Host of the endpoint').fill(new URL(endpoint).host);
  await page.keyboard.press('Enter');
  await untilText(page, '.empty', 'No webhook yet.');
}

/** No further attempt is wanted. */
function refuse(response: ServerResponse, body: string): void {
  response.writeHead(503, { 'webhook-delivery': 'abort-message' }).end(body);
}

/** The receiver of the empty page accepts what its secret signed, and nothing else. */
async function receiverWorks(source: string): Promise<void> {
  await using dir = tempDirectory();
  const file = join(dir.path, 'receiver.mjs');
  const library = join(ROOT, 'node_modules/standardwebhooks/dist/index.js');
  writeFileSync(file, source.replace(`'standardwebhooks'`, JSON.stringify(library)));
  const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
  const port = await freePort();
  const env = { ...process.env, WEBHOOK_SECRET: secret, PORT: String(port) };
  const run = spawn(process.execPath, [file], { env, stdio: 'ignore' });
  const at = Date.now();
  const post = (signature: string) => {
    const headers = signedHeaders('msg_1', signature, at);
    return fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}', headers });
  };
  const signature = new Verifier(secret).sign('msg_1', new Date(at), '{}');
  const accepted = await until(() => post(signature).catch(() => undefined));
  is(accepted.status, 204);
  is((await post(`v1,${Buffer.alloc(32).toString('base64')}`)).status, 400);
  const ended = once(run, 'exit');
  run.kill();
  await ended;
}

function signedHeaders(id: string, signature: string, at: number): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000));
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
}

/** Returns the secret, which is shown once. */
async function createWebhook(page: Page, endpoint: string): Promise<string> {
  await page.getByRole('button', { name: 'New webhook' }).click();
  await page.getByLabel('Endpoint').fill(endpoint);
  for (const type of ['completed', 'failed']) {
    await page.getByLabel(`functions.invocations.${type}`).uncheck();
  }
  is(await page.getByRole('button', { name: 'Create' }).isDisabled(), true);
  await untilText(page, 'dialog legend', 'choose at least one');
  await page.getByLabel('functions.invocations.pending').check();
  await page.getByRole('button', { name: 'Create' }).click();
  await page.locator('dialog .command pre').waitFor();
  const secret = await page.locator('dialog .command pre').innerText();
  match(secret, /^whsec_/);
  await page.getByRole('button', { name: 'Done' }).click();
  return secret;
}

async function rotateSecret(page: Page): Promise<string> {
  await page.getByRole('button', { name: 'Rotate the secret…' }).click();
  await page.getByRole('button', { name: 'Rotate', exact: true }).click();
  await page.locator('dialog .command pre').waitFor();
  const secret = await page.locator('dialog .command pre').innerText();
  await page.getByRole('button', { name: 'Done' }).click();
  await page.locator('dialog').waitFor({ state: 'detached' });
  return secret;
}

/** Both attempts of the delivery, with what was sent and what was answered. */
async function attemptsAreShown(
  person: Person,
  requests: readonly Received[],
  invocationId: string,
): Promise<void> {
  const { page } = person;
  await page.waitForURL(/[?&]d=/);
  await until(async () => (await rowsOf(page)).length === 2);
  const [second, first] = [must(requests.at(-1), 'second'), must(requests.at(-2), 'first')];
  await untilText(page, '[aria-label=Response]', MARKUP);
  await untilText(page, '[aria-label=Response]', 'the first 4 KiB');
  equal(await headersOn(page), headersOf(second));
  is(await page.locator('#body').innerText(), second.body.toString());
  match(second.body.toString(), invocationId);
  await page.locator('tbody a', { hasText: '#1' }).click();
  await untilText(page, '[aria-label=Response]', '\\u202e');
  await untilText(page, '[aria-label=Response]', '500');
  equal(await headersOn(page), headersOf(first));
  is(await page.locator('#app img').count(), 0);
  is(await page.getByRole('link', { name: 'its run' }).count(), 1);
  equal(await defectsInBoth(person), []);
}

/** The request as it was sent, with one thing changed at a time. */
async function signaturesAreExplained(
  person: Person,
  sent: Received,
  secret: string,
): Promise<void> {
  const { page } = person;
  await verify(page, sent, {});
  await untilText(page, '.verified', 'A receiver accepts it');
  await verify(page, sent, { body: sent.body.toString().replace('PENDING', 'RUNNING') });
  await untilText(page, '.verified', 'The body is not the one that was signed');
  const at = Date.now() - 3 * HOUR_MS;
  const id = String(sent.headers['webhook-id']);
  const signature = new Verifier(secret).sign(id, new Date(at), sent.body.toString());
  await verify(page, sent, { headers: signedHeaders(id, signature, at) });
  await untilText(page, '.verified', 'Signed, but refused');
  await untilText(page, '.verified', 'The timestamp is 3 h');
  equal(await defectsInBoth(person), []);
  await page.keyboard.press('Escape');
}

type Change = { body?: string; headers?: Record<string, string> };

async function verify(page: Page, sent: Received, change: Change): Promise<void> {
  const { body = sent.body.toString(), headers = textsOf(sent) } = change;
  if ((await page.locator('dialog').count()) === 0) {
    await page.getByRole('button', { name: 'Verify a signature…' }).click();
  }
  for (const name of HEADERS) {
    await page.getByLabel(name, { exact: true }).fill(headers[name] ?? '');
  }
  await page.getByLabel('Body, byte for byte').fill(body);
  await page.getByRole('button', { name: 'Verify', exact: true }).click();
}

type Failing = {
  stack: Stack;
  functionId: string;
  receiver: Awaited<ReturnType<typeof startReceiver>>;
};

/** Five days of failures disable the webhook; a person enables it and recovers what was skipped. */
async function disabledIsMended(
  { page }: Person,
  { stack, functionId, receiver }: Failing,
): Promise<void> {
  await failSince(stack, Date.now() - 6 * 24 * HOUR_MS);
  receiver.script(500);
  await invoke(stack, functionId);
  await untilText(page, '.session-head', 'Disabled');
  await untilText(page, '.disabled', 'five days of failures');
  const { length } = receiver.requests;
  const { id } = await invoke(stack, functionId);
  await until(async () => (await rowsOf(page)).filter((row) => /Skipped/.test(row)).length === 2);
  is(receiver.requests.length, length);
  await page.getByRole('button', { name: 'Enable' }).click();
  await untilText(page, '.session-head', 'Enabled');
  await page.getByRole('button', { name: 'Recover…' }).click();
  await page.getByRole('button', { name: 'Send again' }).click();
  await untilText(page, '.notice', '2 deliveries are sent again.');
  await receiver.received(({ body }) => body.includes(id));
  await until(async () => (await rowsOf(page)).every((row) => /Delivered/.test(row)));
}

/** As if the endpoint had failed for days: what its row has then. */
async function failSince({ stored }: Stack, at: number): Promise<void> {
  const change = 'UPDATE webhooks SET first_failure_at = ?, last_attempt_at = ?';
  is(await stored.change(change, at, Date.now() - HOUR_MS), 1);
}

/** As the page has them, a line each. */
async function headersOn(page: Page): Promise<Record<string, string>> {
  const names = await page.locator('.headers dt').allInnerTexts();
  const values = await page.locator('.headers dd').allInnerTexts();
  return Object.fromEntries(names.map((name, n) => [name, values[n] ?? '']));
}

/** Those that a delivery sets. */
function headersOf({ headers }: Received): Record<string, string> {
  const names = ['content-type', 'user-agent', 'x-svc-webhook-attempt', ...HEADERS];
  return Object.fromEntries(names.map((name) => [name, String(headers[name])]));
}

function textsOf({ headers }: Received): Record<string, string> {
  return Object.fromEntries(HEADERS.map((name) => [name, String(headers[name])]));
}

function signaturesOf(headers: Received['headers']): string[] {
  return String(headers['webhook-signature']).split(' ');
}

function isWide(page: Page): Promise<boolean> {
  return page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth');
}

async function defectsInBoth({ page }: Person): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    found.push(...(await seriousDefects(page)).map((one) => `${colorScheme} ${one}`));
  }
  return found;
}
