/**
 * The console of a service whose data and clock are always the same: `data.tar.gz` is the data
 * directory of a service that had two weeks of work, and the clock stands at `NOW`. Made by
 * write-data.ts.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { extract } from 'tar';
import { logIn, openConsole, type Person } from '../../../support/clients/console.ts';
import { until } from '../../../support/poll.ts';
import { type BootOptions, boot, type Stack } from '../../../support/service/stack.ts';
import { tempDirectory } from '../../../support/temp.ts';

export const NOW = Date.parse('2026-03-12T12:00:30Z');
export const KEY = 'svc_test_of_the_compared_looks';
export const DATA = fileURLToPath(new URL('data.tar.gz', import.meta.url));
const PRELOAD = new URL('../../../support/service/clock-preload.ts', import.meta.url).href;
/** Fonts that every machine of the tests has, no caret, and nothing of this machine. */
const STYLE = `* { font-family: 'Liberation Sans' !important; caret-color: transparent !important }
  .service { visibility: hidden }
  pre, code, kbd { font-family: 'Liberation Mono' !important }`;
/** So that Playwright may add STYLE. */
const OPTIONS = { bypassCSP: true };
const ANSWERS = ['*/console/*', '*/v1/*'];

export type Theme = 'light' | 'dark';
export const THEMES: readonly Theme[] = ['light', 'dark'];

/** A service whose wall clock can be set; `data`: the data directory that it begins with. */
export async function bootAt(at: number, data?: string, more: Partial<BootOptions> = {}) {
  await using cleanup = new AsyncDisposableStack();
  const dir = cleanup.use(tempDirectory());
  const file = join(dir.path, 'clock');
  const set = (time: number) => writeFileSync(file, String(time - Date.now()));
  set(at);
  const laterMs = Date.now() - at;
  const env = { NODE_OPTIONS: `--import ${PRELOAD}`, TABERN_TEST_CLOCK: file };
  const stack = cleanup.use(await boot({ ...more, ...(data ? { data } : {}), apiKey: KEY, env }));
  await stack.stored.setClock(-laterMs);
  const kept = cleanup.move();
  return {
    stack,
    /** How much later the clock of this machine is. */
    laterMs,
    /** Sets the clock of the service. */
    async setClock(time: number): Promise<void> {
      set(time);
      await stack.stored.setClock(time - Date.now());
      const pids = [...(await stack.pidsOf('core')), ...(await stack.pidsOf('gateway'))];
      for (const pid of new Set(pids)) process.kill(pid, 'SIGUSR2');
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** The service with the data, at the time of the pictures. */
export async function openScene() {
  await using cleanup = new AsyncDisposableStack();
  const dir = cleanup.use(tempDirectory());
  await extract({ file: DATA, cwd: dir.path });
  const scene = cleanup.use(await bootAt(NOW, dir.path));
  const kept = cleanup.move();
  return {
    stack: scene.stack,
    /** Sets the clock back to the time of the pictures. */
    setClock: () => scene.setClock(NOW),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

export function pictureFile({ name }: Pick<Look, 'name'>, theme: Theme): string {
  return fileURLToPath(new URL(`${name}-${theme}.png`, import.meta.url));
}

export type Look = { name: string; path: string; shows: string };

/** The pages whose looks are compared: their paths, and a text that each ends its loading with. */
export async function looksOf({ call, projectId }: Stack): Promise<Look[]> {
  type Rows = { sessions: { id: string }[]; invocations: { id: string; functionId: string }[] };
  const [session] = (await call<Rows>('/console/api/v1/sessions?text=4711')).sessions;
  const [run] = (await call<Rows>('/console/api/v1/invocations?status=FAILED')).invocations;
  const [webhook] = (await call<{ data: { id: string }[] }>('/v1/webhooks')).data;
  const paths: readonly [name: string, path: string, shows: string][] = [
    ['overview', '', 'the shop is closed'],
    ['sessions', 'sessions', 'order: 4711'],
    ['session', `sessions/${session?.id}?tab=net`, '/basket/Sencha'],
    ['run', `runs/${run?.id}`, 'the basket is nearly full'],
    ['function', `functions/${run?.functionId}`, 'the shop is closed'],
    ['webhook', `webhooks/${webhook?.id}`, 'Delivered'],
    ['usage', 'usage', 'order'],
  ];
  return paths.map(([name, path, shows]) => {
    return { name, path: `/console/p/${projectId}/${path}`.replace(/\/$/, ''), shows };
  });
}

/** A person's browser at the console, logged in, whose answers have the time of the data. */
export async function openLooks(stack: Stack) {
  await using cleanup = new AsyncDisposableStack();
  const person = cleanup.use(await openConsole(stack, '/console', OPTIONS));
  await standStill(person);
  await logIn(person, stack);
  const kept = cleanup.move();
  return {
    faults: person.faults,
    /** The picture of the page in the theme: the first of two that are equal. */
    async picture({ path, shows }: Look, theme: Theme): Promise<Buffer> {
      const { page } = person;
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      await page.goto(stack.url + path);
      await page.getByText(shows).first().waitFor();
      let last = await shot(page);
      return until(async () => {
        const next = await shot(page);
        const isSame = next.equals(last);
        last = next;
        return isSame && next;
      });
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** The page takes its clock from the Date of answers, which Node takes from the machine. */
async function standStill({ context, page }: Person): Promise<void> {
  const client = await context.newCDPSession(page);
  const date = { name: 'date', value: new Date(NOW).toUTCString() };
  client.on('Fetch.requestPaused', ({ requestId, responseHeaders = [], responseStatusCode }) => {
    const others = responseHeaders.filter(({ name }) => name.toLowerCase() !== 'date');
    const answer = {
      requestId,
      responseCode: responseStatusCode ?? 200,
      responseHeaders: [...others, date],
    };
    client.send('Fetch.continueResponse', answer).catch(() => undefined); // the page has left
  });
  const patterns = ANSWERS.map((urlPattern) => {
    return { urlPattern, requestStage: 'Response' as const };
  });
  await client.send('Fetch.enable', { patterns });
}

/** The address of the service is another each time; the page shows that of its documentation. */
async function shot(page: Page): Promise<Buffer> {
  await page.evaluate(`{
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const { currentNode } = texts;
      const shown = currentNode.data.replaceAll(location.host, '127.0.0.1:4747');
      if (shown !== currentNode.data) currentNode.data = shown;
    }
  }`);
  return page.screenshot({ animations: 'disabled', style: STYLE });
}
