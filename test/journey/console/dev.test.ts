/** The page of `tabern dev` in a person's Chrome: its address from the terminal, a run again. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import { equal, is } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { openConsole, seriousDefects, untilText } from '../../support/clients/console.ts';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { startGroup } from '../../support/service/group.ts';
import type { Stack } from '../../support/service/stack.ts';
import { tempDirectory } from '../../support/temp.ts';

const journey = suite('journey/console/dev');
const BIN = fileURLToPath(new URL('../../../gateway/bin.ts', import.meta.url));
/** For a build and the start of a browser, on a busy machine. */
const PATIENCE_MS = 180_000;
const MARKUP = '<img src=x onerror=alert(1)>';
const ENTRY = `import { defineFn } from 'tabern';
defineFn('greets', async (ctx, params) => {
  console.log('${MARKUP} greets', params.name);
  if (params.name === 'nobody') throw new RangeError('${MARKUP} nobody is there');
  return { greeting: 'hello ' + params.name };
});
`;

/** Serves the functions, and runs one as a developer does. */
async function startDev() {
  await using cleanup = new AsyncDisposableStack();
  const dir = cleanup.use(tempDirectory());
  const project = join(dir.path, 'p');
  mkdirSync(project);
  writeFileSync(join(project, 'index.ts'), ENTRY);
  const port = String(await freePort());
  const kept = Object.entries(process.env).filter(([name]) => !/^(?:npm_|TABERN_)/.test(name));
  const env = { ...(Object.fromEntries(kept) as Record<string, string>) };
  env['XDG_CACHE_HOME'] = join(dir.path, 'c');
  const command = [process.execPath, BIN, 'dev', 'index.ts', '--port', port];
  const dev = cleanup.use(startGroup(command, { cwd: project, env }));
  await until(() => {
    if (dev.hasEnded()) throw new Error(dev.said());
    return dev.said().includes('listening on');
  }, PATIENCE_MS);
  const url = `http://127.0.0.1:${port}`;
  const moved = cleanup.move();
  return {
    url,
    said: dev.said,
    async invoke(params: object): Promise<number> {
      const headers = { 'content-type': 'application/json' };
      const init = { method: 'POST', headers, body: JSON.stringify({ params }) };
      return (await fetch(`${url}/v1/functions/greets/invoke`, init)).status;
    },
    /** The address of the newest run's page, as the terminal prints it. */
    address: () =>
      must(
        dev
          .said()
          .match(/http:\S+\/console\/runs\/\S+/g)
          ?.at(-1),
        'an address',
      ),
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}

journey(
  'the terminal prints the page of a run, which starts it again with new params',
  async () => {
    await using dev = await startDev();
    is(await dev.invoke({ name: 'nobody' }), 500);
    const path = new URL(dev.address()).pathname;
    await using person = await openConsole({ url: dev.url } as Stack, path);
    const { page } = person;
    await untilText(page, '.cause', `RangeError: ${MARKUP} nobody is there`);
    await untilText(page, '.cause', 'index.ts:4');
    await untilText(page, '.log', `${MARKUP} greets nobody`);
    await untilText(page, '.waterfall', 'handler');
    equal(await seriousDefects(page), []);
    await page.emulateMedia({ colorScheme: 'dark' });
    equal(await seriousDefects(page), []);

    await page.getByRole('button', { name: 'Run again' }).focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Run again' });
    await dialog.locator('textarea').fill('{"name": "anna"}');
    equal(await seriousDefects(page), []);
    await dialog.getByRole('button', { name: 'Run', exact: true }).click();
    await page.waitForURL((url) => url.pathname !== path);
    await untilText(page, '.run', '"hello anna"');
    await untilText(page, '.dev-runs', 'Completed');
    is(await page.locator('.dev-runs li').count(), 2);
    is(dev.said().includes(page.url()), true, 'the terminal prints its address, too');
    await page.getByRole('link', { name: /Failed/ }).click();
    await untilText(page, '.cause', 'RangeError');
    await page.goto(`${dev.url}/console/runs/0196f7aa-0000-7000-8000-000000000001`);
    await untilText(page, '[role=alert]', 'There is no such run');
    equal(person.faults, []);
  },
);

journey.run();
