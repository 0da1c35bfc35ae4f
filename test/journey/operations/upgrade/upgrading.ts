/** `tabern upgrade` of a service by a copy of the program, and a client that types meanwhile. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { equal, is } from 'uvu/assert';
import { must } from '../../../../proto/common/must.ts';
import { processes } from '../../../support/service/processes.ts';
import type { Stack } from '../../../support/service/stack.ts';
import type { ProgramCopy } from './program-copy.ts';

/** In milliseconds: of one upgrade, or of the end of what it replaces, on a busy machine. */
export const UPGRADE_LIMIT_MS = 300_000;
const PAGE = 'data:text/html,<input autofocus>';

export type Session = { id: string; status: string; connectUrl: string };

export const read = (stack: Stack, id: string) => stack.call<Session>(`/v1/sessions/${id}`);

export const release = (stack: Stack, id: string) =>
  stack.call(`/v1/sessions/${id}`, { json: { status: 'REQUEST_RELEASE' } });

/** Runs `tabern upgrade` of that program. */
export const upgrade = (stack: Stack, { bin }: Pick<ProgramCopy, 'bin'>) =>
  runUpgrade(stack, [process.execPath, bin]);

export async function runUpgrade(
  { dataDir }: Pick<Stack, 'dataDir'>,
  [program, ...words]: readonly [string, ...string[]],
  variables: Record<string, string> = {},
) {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(program, [...words, 'upgrade', '--data', dataDir], {
    env: { PATH, HOME, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  const [code] = await once(child, 'close', { signal: AbortSignal.timeout(UPGRADE_LIMIT_MS) });
  return { code, said };
}

export async function upgradeTo(
  stack: Stack,
  program: ProgramCopy,
  version: string,
): Promise<void> {
  program.release(version);
  equal(await upgrade(stack, program), { code: 0, said: `tabern ${version} serves\n` });
}

/** The processes of the service that run this program. */
export const running = ({ path }: ProgramCopy, role: string) =>
  processes().filter(({ command }) => command.includes(`${path}/`) && command.includes(` ${role}`));

export type Typist = AsyncDisposable & { id: string; typed: () => string; stop(): Promise<void> };

/** A session whose client types, key by key, until it is stopped. */
export async function startTypist(stack: Stack): Promise<Typist> {
  const { id, connectUrl } = await stack.call<Session>('/v1/sessions', { json: {} });
  const browser = await chromium.connectOverCDP(connectUrl);
  const page = must(browser.contexts()[0]?.pages()[0], 'a page');
  await page.goto(PAGE);
  await page.focus('input');
  let typed = '';
  let isOver = false;
  const typing = (async () => {
    while (!isOver) {
      const key = String(typed.length % 10);
      await page.keyboard.press(key);
      typed += key;
      await pause(20); // a typist
    }
  })();
  typing.catch(() => undefined); // awaited by stop
  return {
    id,
    typed: () => typed,
    async stop() {
      isOver = true;
      await typing;
      is(await page.inputValue('input'), typed, 'each key arrived once');
      await browser.close();
    },
    /** Also when the test has failed: it would type for ever. */
    async [Symbol.asyncDispose]() {
      isOver = true;
      await browser.close();
    },
  };
}
