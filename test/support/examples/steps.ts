/**
 * The steps of an example: how a test runs one fenced block of a page, and what it must print; the
 * sessions and replacements that steps share.
 */
import { chromium, type Page } from 'playwright-core';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { until } from '../poll.ts';
import type { Receiver } from '../servers/receiver.ts';
import type { Site } from '../servers/site.ts';
import type { Stack } from '../service/stack.ts';
import { allBlocks, type Block } from './blocks.ts';
import type { Reader } from './reader.ts';

export const LIMIT_MS = 100_000;

export type Desk = { stack: Stack; site: Site; receiver: Receiver; reader: Reader };
/** `begins`: the beginning of the block. It runs, or another test runs it. */
export type Step = { begins: string } & (
  | { run(code: string, desk: Desk): Promise<void> }
  | { ranBy: string; mentions: readonly string[] }
);
export type Session = { id: string; connectUrl: string };

/** A block whose output has this. `change`: what a test must change, with the reason beside it. */
export function shell(
  begins: string,
  says = /(?:)/,
  change?: (code: string, desk: Desk) => string,
): Step {
  return {
    begins,
    async run(code, desk) {
      assert.match(await desk.reader.run(change?.(code, desk) ?? code), says);
    },
  };
}

export function file(begins: string, name: string): Step {
  return { begins, run: (code, { reader }) => reader.write(name, code) };
}

/** A file that the text of the page says how to run. */
export function program(begins: string, says: RegExp, setup = ''): Step {
  return {
    begins,
    async run(code, { reader }) {
      if (setup !== '') await reader.run(setup);
      const name = must(/^\/\/ ([\w.]+)/.exec(code)?.[1], 'the name of the file');
      await reader.write(name, code);
      assert.match(await reader.run(`node ${name}`), says);
    },
  };
}

export function elsewhere(begins: string, ranBy: string, ...mentions: string[]): Step {
  return { begins, ranBy, mentions };
}

/** README.md repeats lines of another page, which run there. */
export function repeated(begins: string, page: string): Step {
  return {
    begins,
    async run(code, desk) {
      const blocks = allBlocks().get(page) ?? [];
      const known = linesOf(blocks.map((one) => prepared(one, desk)).join('\n'));
      for (const line of linesOf(code)) assert.ok(known.includes(line), `${page}: ${line}`);
    },
  };
}

/** Without comments, and with one command a line. */
export function linesOf(code: string): string[] {
  const commands = code.replaceAll(' && ', '\n').split('\n');
  const bare = commands.map((line) => line.replace(/\s+(?:#|\/\/) .*$|^(?:#|\/\/) .*$/, '').trim());
  return bare.filter((line) => line !== '');
}

export async function openSession({ stack }: Desk): Promise<Session> {
  return await stack.call<Session>('/v1/sessions', { json: { keepAlive: true } });
}

/** The session that a command has printed. */
export async function printedSession(printed: Promise<string>): Promise<Session> {
  const said = await printed;
  return JSON.parse(must(/^\{.*\}$/m.exec(said)?.[0], said)) as Session;
}

export async function release({ stack }: Desk, { id }: Session): Promise<void> {
  await stack.call(`/v1/sessions/${id}`, { json: { status: 'REQUEST_RELEASE' } });
  await until(async () => (await statusOf(stack, id)) === 'COMPLETED', LIMIT_MS);
}

async function statusOf(stack: Stack, id: string): Promise<string> {
  return (await stack.call<{ status: string }>(`/v1/sessions/${id}`)).status;
}

export async function onPage(
  connectUrl: string,
  act: (page: Page) => Promise<void>,
): Promise<void> {
  const browser = await chromium.connectOverCDP(connectUrl);
  try {
    await act(must(browser.contexts()[0]?.pages()[0], 'the page'));
  } finally {
    await browser.close();
  }
}

/** With `<name-id>` replaced. */
export function filled(code: string, ids: Readonly<Record<string, string>>): string {
  return Object.entries(ids).reduce(
    (text, [name, id]) => text.replaceAll(`<${name}-id>`, id),
    code,
  );
}

/** The replacements that every block has. */
export function prepared({ code }: Block, { stack, site, receiver }: Desk): string {
  return code
    .replaceAll('svc_...', stack.apiKey)
    .replaceAll('//127.0.0.1:4747', stack.url.replace(/^http:/, ''))
    .replaceAll('https://example.com/hook', `${receiver.url}/hook`)
    .replaceAll('https://example.com/', `${site.url}/rooms`)
    .replaceAll('<project-id>', stack.projectId);
}
