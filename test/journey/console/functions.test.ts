/**
 * Functions and runs in a person's own Chrome, against the real service: publish a zip, follow its
 * build, run it by its form, read what came of it, run it again and compare.
 */
import { suite } from 'uvu';
import { equal, is, match, ok } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import {
  logIn,
  openConsole,
  type Person,
  rowsOf,
  seriousDefects,
  untilText,
} from '../../support/clients/console.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { zipOf } from '../../support/clients/zip.ts';
import { until } from '../../support/poll.ts';
import { type Stack, shareStack } from '../../support/service/stack.ts';

const journey = suite('journey/console/functions');
const service = shareStack();

const MARKUP = '<img src=x onerror=alert(1)>';
const PACKAGE = '{"name":"echo","version":"1.0.0","private":true,"type":"module"}';
const ECHO = `import { defineFn } from 'tabern';
defineFn('echo', async (ctx, params) => {
  console.log('first', params.word);
  await new Promise((resolve) => setTimeout(resolve, Number(params.ms)));
  console.warn('${MARKUP} last');
  return { said: params.word, times: params.times, note: '${MARKUP}', '${MARKUP}': 1 };
}, { parametersSchema: {
  type: 'object',
  properties: {
    word: { type: 'string', title: '${MARKUP}' },
    times: { type: 'integer', default: 1 },
    colour: { enum: ['red', 'blue'] },
    ms: { type: 'number', default: 0 },
  },
  required: ['word'],
} });
const row = (n) => ({ n, text: 'x'.repeat(40) });
defineFn('large', async () => Array.from({ length: 100_000 }, (_, n) => row(n)));
`;
const FILES = { 'package.json': PACKAGE, 'index.ts': ECHO };

type Functions = { functions: { id: string; name: string }[] };

/** The functions of FILES, published once for all tests. */
let published: Promise<Record<string, string>> | undefined;
const functionsOf = (stack: Stack) => {
  published ??= publish(stack, FILES);
  return published;
};

journey('a zip is published, its build followed, and its function run by its form', async () => {
  const stack = await service.get();
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  const root = rootOf(stack);
  await page.goto(`${root}/functions`);
  await page.getByRole('link', { name: 'Publish' }).click();
  await untilText(page, '.publish', 'tabern publish index.ts');
  equal(await defectsInBoth(person), []);
  const buffer = zipOf([
    { name: 'shop/' },
    { name: 'shop/package.json', text: PACKAGE.replace('echo', 'zipped') },
    { name: 'shop/index.ts', text: ECHO.replace("'echo'", "'zipped'").replace("'large'", "'z'") },
    { name: 'shop/node_modules/left/index.js', text: 'out' },
  ]);
  const input = page.locator('input[type=file]');
  await input.setInputFiles({ name: 'shop.txt', mimeType: 'text/plain', buffer });
  await untilText(page, '[role=alert]', 'can be published');
  await input.setInputFiles({ name: 'shop.zip', mimeType: 'application/zip', buffer });
  await untilText(page, '.publish form', '2 files');
  await untilText(page, '.publish form', '1 left out');
  is(await page.getByLabel('Entry file').inputValue(), 'index.ts');
  await page.locator('form').first().getByRole('button', { name: 'Publish' }).click();
  await page.waitForURL('**/builds/*');
  await untilText(page, '.log', 'bundling index.ts');
  await untilText(page, '.session-head', 'Completed');
  await untilText(page, '.log', 'built 2 function');
  equal(await defectsInBoth(person), []);
  await page.getByRole('link', { name: 'zipped' }).click();
  await runByForm(stack, person);
  equal(person.faults, []);
});

journey('a run is run again with edited params, and compared with the one before', async () => {
  const stack = await service.get();
  const { echo } = await functionsOf(stack);
  const { id } = await invoke(stack, must(echo, 'echo'), { word: 'one', times: 2 });
  await ended(stack, id);
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.goto(`${rootOf(stack)}/runs/${id}`);
  await untilText(page, '.waterfall', 'handler');
  await page.keyboard.press('r');
  const dialog = page.getByRole('dialog', { name: 'Run again' });
  await dialog.getByLabel('(word)').waitFor();
  is(await dialog.getByLabel('(word)').inputValue(), 'one');
  equal(await defectsInBoth(person), []);
  await dialog.getByRole('button', { name: 'Edit as JSON' }).click();
  const text = dialog.locator('textarea[name=params]');
  match(await text.inputValue(), /"times": 2/);
  await text.fill('[1]');
  await dialog.getByRole('button', { name: 'Run', exact: true }).click();
  await untilText(page, 'dialog [role=alert]', 'JSON object');
  await text.fill('{"word":"two","times":2}');
  await dialog.getByRole('button', { name: 'Use the form' }).click();
  is(await dialog.getByLabel('(word)').inputValue(), 'two');
  await dialog.getByLabel('times').focus();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => !url.pathname.endsWith(id));
  await untilText(page, '.session-head', 'Completed');
  await page.getByRole('button', { name: 'Compare' }).click();
  await untilText(page, '.compare', 'the other run');
  await untilText(page, '.compare', 'word');
  await untilText(page, '.compare', '"one"');
  await untilText(page, '.compare', '"two"');
  await untilText(page, '.compare', 'handler');
  const shown = (await page.locator('.compare').allInnerTexts()).join();
  is(shown.includes('times'), false, 'what is equal is not listed');
  await page.getByLabel('The id of a run').fill(crypto.randomUUID());
  await page.keyboard.press('Enter');
  await page.locator('.compare [role=alert]').waitFor();
  await page.goto(`${page.url().split('?')[0]}?with=${id}`);
  await untilText(page, '.compare', '"one"');
  equal(await defectsInBoth(person), []);
  equal(person.faults, []);
});

journey('the log of a run is followed, the run cancelled, and markup stays text', async () => {
  const stack = await service.get();
  const { echo } = await functionsOf(stack);
  const { id } = await invoke(stack, must(echo, 'echo'), { word: MARKUP, ms: 600_000 });
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.goto(`${rootOf(stack)}/runs/${id}`);
  await untilText(page, '.log', `first ${MARKUP}`);
  await untilText(page, '.log', 'follows');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await untilText(page, '.session-head', 'Failed');
  await untilText(page, '.cause', 'cancelled');
  const done = await invoke(stack, must(echo, 'echo'), { word: `${MARKUP} 2` });
  await ended(stack, done.id);
  await page.goto(`${rootOf(stack)}/runs/${done.id}?with=${id}`);
  await untilText(page, '.log', `${MARKUP} last`);
  await untilText(page, '.json', `"note": "${MARKUP}"`);
  await untilText(page, '.compare', `"${MARKUP} 2"`);
  equal(await defectsInBoth(person), []);
  is(await page.locator('#app img').count(), 0);
  await page.goto(`${rootOf(stack)}/runs`);
  await page.locator('label:has-text("Function") select').selectOption({ label: 'echo' });
  await until(async () => (await rowsOf(page)).every((row) => row.includes('echo')));
  match(page.url(), /functionId=/);
  equal(await defectsInBoth(person), []);
  equal(person.faults, []);
});

journey('one file is pasted and published; a build that fails says why', async () => {
  const stack = await service.get();
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.goto(`${rootOf(stack)}/publish`);
  await page.getByLabel('Source').fill('export const nothing = 1;');
  await page.getByRole('button', { name: 'Publish' }).click();
  await page.waitForURL('**/builds/*');
  await untilText(page, '.cause', 'NO_MANIFESTS_FOUND');
  await page.goto(`${rootOf(stack)}/publish`);
  await page.getByRole('button', { name: 'Use the example' }).click();
  await page.getByRole('button', { name: 'Publish' }).click();
  await page.waitForURL('**/builds/*');
  await page.getByRole('link', { name: 'hello' }).click();
  await page.getByLabel('Params, as a JSON object').fill('{"name":"anna"}');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.waitForURL('**/runs/*');
  await untilText(page, '.json', '"hello": "anna"');
  await page.goto(`${rootOf(stack)}/builds`);
  await untilText(page, 'tbody', 'NO_MANIFESTS_FOUND');
  equal(await defectsInBoth(person), []);
  const { functions } = await stack.call<Functions>('/console/api/v1/functions');
  ok(functions.some(({ name }) => name === 'hello'));
  await page.goto(`${rootOf(stack)}/functions`);
  await untilText(page, 'tbody', 'hello');
  equal(await defectsInBoth(person), []);
  for (const path of ['/functions', '/builds', '/runs']) {
    await page.goto(`${rootOf(stack)}${path}/${crypto.randomUUID()}`);
    await page.locator('[role=alert]').waitFor();
  }
  equal(person.faults, []);
});

journey('a list that is longer than a screen has all of its rows', async () => {
  const stack = await service.get();
  const { echo } = await functionsOf(stack);
  const runs = Array.from({ length: 30 }, () => invoke(stack, must(echo, 'echo'), { word: 'row' }));
  await Promise.all((await Promise.all(runs)).map(({ id }) => ended(stack, id)));
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.goto(`${rootOf(stack)}/runs`);
  await until(async () => (await rowsOf(page)).length >= 30);
  equal(person.faults, []);
});

journey('a result of 6 MiB is shown, and the page goes on', async () => {
  const stack = await service.get();
  const { large } = await functionsOf(stack);
  const { id } = await invoke(stack, must(large, 'large'));
  await ended(stack, id);
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.goto(`${rootOf(stack)}/runs/${id}`);
  await untilText(page, '.json', '100000 items');
  await page.locator('.json-branch', { hasText: '100000 items' }).click();
  await untilText(page, '.json', 'of 100000');
  ok((await page.locator('.json li').count()) < 1_300, 'few of its members are drawn');
  await page.keyboard.press('d');
  await untilText(page, '.compare', 'no other run');
  equal(person.faults, []);
});

journey('a schedule is made, paused and deleted on the page of its function', async () => {
  const stack = await service.get();
  const { echo } = await functionsOf(stack);
  await using person = await openConsole(stack);
  await logIn(person, stack);
  const { page } = person;
  await page.goto(`${rootOf(stack)}/functions/${must(echo, 'echo')}`);
  await untilText(page, '.function', 'It runs at no times.');
  await page.getByRole('button', { name: 'New schedule' }).click();
  const dialog = page.getByRole('dialog', { name: 'New schedule' });
  await dialog.getByLabel('Times').fill('0 0 30 2 *');
  await dialog.getByLabel('Time zone').fill('Europe/Berlin');
  equal(await defectsInBoth(person), []);
  await dialog.getByLabel('Params').fill('{"word":"now"}');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await untilText(page, 'dialog [role=alert]', 'no such date exists');
  await dialog.getByLabel('Times').fill('0 9 1 1 *');
  await dialog.getByRole('button', { name: 'Create' }).click();
  const table = page.getByRole('table', { name: 'Schedules' });
  await table.getByText('0 9 1 1 * Europe/Berlin').waitFor();
  const path = `/v1/functions/${echo}/schedules`;
  type Listed = { data: { enabled: boolean; params: object; nextRunAt?: string }[] };
  const [made] = (await stack.call<Listed>(path)).data;
  equal(made?.params, { word: 'now' });
  match(String(made?.nextRunAt), /-01-01T08:00:00/);
  await table.getByRole('button', { name: 'Pause' }).click();
  await table.getByText('paused').waitFor();
  is((await stack.call<Listed>(path)).data[0]?.enabled, false);
  equal(await defectsInBoth(person), []);
  await table.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await untilText(page, '.function', 'It runs at no times.');
  equal((await stack.call<Listed>(path)).data, []);
  // the browser logs the refusal of the first text
  equal(
    person.faults.filter((text) => !text.includes('400')),
    [],
  );
});

journey('the service of these tests leaves nothing', () => service.end());

journey.run();

function rootOf({ url, projectId }: Stack): string {
  return `${url}/console/p/${projectId}`;
}

async function defectsInBoth({ page }: Person): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    found.push(...(await seriousDefects(page)).map((one) => `${colorScheme} ${one}`));
  }
  return found;
}

/** On the page of the function: first wrong params, then right ones. */
async function runByForm(stack: Stack, person: Person): Promise<void> {
  const { page } = person;
  await page.waitForURL('**/functions/*');
  await untilText(page, '.invoke', 'required');
  await untilText(page, '.command', `${stack.url}/v1/functions/`);
  equal(await defectsInBoth(person), []);

  await page.getByLabel('times').fill('three');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await untilText(page, '.field:has([aria-invalid=true])', "required property 'word'");
  await page.getByLabel(`${MARKUP} (word)`).fill('hello');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  const wrong = page.locator('.field', { has: page.getByLabel('times') });
  await until(async () => (await wrong.innerText()).includes('must be integer'));
  is(await page.locator('.field [role=alert]').count(), 1);
  await page.getByLabel('times').fill('3');
  await page.getByLabel('colour').selectOption('"blue"');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.waitForURL('**/runs/*');
  await untilText(page, '.session-head', 'Completed');
  await untilText(page, '.json', '"said": "hello"');
  const id = must(page.url().split('/').at(-1), 'an id');
  const { params } = await stack.call<{ params: object }>(`/v1/functions/invocations/${id}`);
  equal(params, { word: 'hello', times: 3, colour: 'blue', ms: 0 });
}
