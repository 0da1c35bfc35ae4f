/** API keys in the console: a key is shown once, and its end ends the login that it made. */
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import {
  defectsInBoth,
  logIn,
  openConsole,
  type Person,
  untilText,
} from '../../support/clients/console.ts';
import { until } from '../../support/poll.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';

const journey = suite('journey/console/settings');
const service = shareStack();

const MARKUP = '<img src=x onerror=alert(1)>';

type Keys = { keys: { id: string; name: string; revokedAt?: string }[] };

async function openSettings(stack: Stack): Promise<Person> {
  const person = await openConsole(stack);
  await logIn(person, stack);
  await person.page.keyboard.press('g');
  await person.page.keyboard.press('k');
  await person.page.locator('h1', { hasText: 'Settings' }).waitFor();
  return person;
}

/** Makes a key in the page; returns its text. */
async function makeKey({ page }: Person, name: string): Promise<string> {
  await page.getByRole('button', { name: 'New key' }).click();
  await page.getByLabel('Name').fill(name);
  await page.getByRole('button', { name: 'Make key' }).click();
  const text = await page.getByRole('dialog', { name: 'The new key' }).locator('pre').innerText();
  await page.mouse.click(5, 5); // beside the dialog, which stays
  await page.getByRole('button', { name: 'I have copied it' }).click();
  return text;
}

const row = ({ page }: Person, text: string) =>
  page.locator('tbody tr').filter({ has: page.locator('td.wide', { hasText: text }) });

journey('a key is shown once, works, and is nowhere in the page after that', async () => {
  const stack = await service.get();
  await using person = await openSettings(stack);
  const { page } = person;
  const name = `ci ${MARKUP}`;
  const text = await makeKey(person, name);
  match(text, /^svc_[a-z0-9]{8}_/);
  const headers = { 'x-svc-api-key': text };
  is((await fetch(`${stack.url}/v1/projects`, { headers })).status, 200);
  await row(person, name).waitFor();
  const kept = await page.evaluate<string>(
    `JSON.stringify([document.documentElement.outerHTML, document.cookie, { ...localStorage },
      { ...sessionStorage }, location.href, history.state])`,
  );
  is(kept.includes(text.slice(13)), false);
  is(
    person.requested().some((url) => url.includes(text.slice(13))),
    false,
  );
  is(await page.locator('#app img').count(), 0);
  await untilText(page, '.setting-groups', 'Sessions at once');
  equal(await defectsInBoth(person), []);
  await page.getByRole('button', { name: 'New key' }).click();
  equal(await defectsInBoth(person), []);
  await page.keyboard.press('Escape');
  equal(person.faults, []);
});

journey('the end of a key ends the login that it made, and says so before', async () => {
  const stack = await service.get();
  await using maker = await openSettings(stack);
  const apiKey = await makeKey(maker, 'for a tab');
  const id = must(apiKey.split('_')[1], 'the public part');
  await using person = await openSettings({ ...stack, apiKey });
  const { page } = person;
  await untilText(page, 'tbody', 'this login');
  const later = await makeKey(person, 'made later');
  await row(person, 'for a tab').getByRole('button', { name: 'Revoke' }).click();
  await untilText(page, 'dialog', 'yours included');
  await untilText(page, 'dialog', 'made later');
  equal(await defectsInBoth(person), []);
  await page.keyboard.press('Escape');
  // by the other tab: this one is told
  const startedAt = performance.now();
  await row(maker, 'for a tab').getByRole('button', { name: 'Revoke' }).click();
  await maker.page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.locator('#key').waitFor();
  process.stdout.write(
    `logged out ${Math.round(performance.now() - startedAt)} ms after a click\n`,
  );
  await row(maker, 'for a tab').filter({ hasText: 'Revoked' }).filter({ hasText: id }).waitFor();
  is(
    (await fetch(`${stack.url}/v1/projects`, { headers: { 'x-svc-api-key': apiKey } })).status,
    401,
  );
  const other = { 'x-svc-api-key': later };
  is((await fetch(`${stack.url}/v1/projects`, { headers: other })).status, 200);
  equal(maker.faults, []);
  equal(person.faults, []);
});

journey('the last valid key is revoked only after a confirmation', async () => {
  const stack = await service.get();
  const { keys } = await stack.call<Keys>('/console/api/v1/keys');
  const own = must(
    keys.find(({ name }) => name === 'preset'),
    'the preset key',
  );
  for (const { id, revokedAt } of keys) {
    if (id === own.id || revokedAt !== undefined) continue;
    await stack.call(`/console/api/v1/keys/${id}/revoke`, { json: {} });
  }
  const refused = await stack.fetch(`/console/api/v1/keys/${own.id}/revoke`, { json: {} });
  is(refused.status, 409);
  await using person = await openSettings(stack);
  const { page } = person;
  await row(person, 'preset').getByRole('button', { name: 'Revoke' }).click();
  const dialog = page.getByRole('dialog');
  const button = dialog.getByRole('button', { name: 'Revoke' });
  await untilText(page, 'dialog', 'the only valid key');
  ok(await button.isDisabled());
  await dialog.getByRole('checkbox').check();
  await button.click();
  await page.locator('#key').waitFor();
  await until(async () => (await stack.fetch('/v1/projects')).status === 401);
  equal(person.faults, []);
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();
