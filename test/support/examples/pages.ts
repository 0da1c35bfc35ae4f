/** Runs the blocks of pages, in one shell for a page and with one service for all. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { startReceiver } from '../servers/receiver.ts';
import { startSite } from '../servers/site.ts';
import { boot } from '../service/stack.ts';
import { allBlocks, type Block, ROOT } from './blocks.ts';
import { openReader } from './reader.ts';
import { type Desk, prepared, type Step } from './steps.ts';

const NO_PROGRAM: ReadonlySet<string> = new Set(['text']);

export type Pages = Readonly<Record<string, readonly Step[]>>;
export type Place = Omit<Desk, 'reader'>;

/** Throws when a block has no step, or a step no block. */
export function checkSteps(page: string, steps: readonly Step[]): void {
  const blocks = blocksOfPage(page);
  for (const [at, { code }] of blocks.entries()) {
    const begins = steps[at]?.begins;
    assert.ok(begins !== undefined && code.startsWith(begins), `${page}: no step for\n${code}`);
  }
  assert.is(steps.length, blocks.length, page);
  for (const step of steps) {
    if ('run' in step) continue;
    const text = readFileSync(join(ROOT, step.ranBy), 'utf8');
    for (const word of step.mentions) assert.match(text, word, `${step.ranBy}: ${word}`);
  }
}

export async function openPlace(): Promise<Place & AsyncDisposable> {
  await using opened = new AsyncDisposableStack();
  const receiver = opened.use(await startReceiver());
  const site = opened.use(await startSite());
  const stack = opened.use(await boot({ webhookCa: receiver.caPath }));
  const kept = opened.move();
  return { receiver, site, stack, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** Returns the failures, at most one of a page: the blocks after it use what it creates. */
export async function runPages(pages: Pages, place: Place): Promise<string[]> {
  const failures: string[] = [];
  for (const [page, steps] of Object.entries(pages)) {
    const failure = await runPage(page, steps, place);
    if (failure !== undefined) failures.push(`${page}: ${failure}`);
  }
  return failures;
}

async function runPage(
  page: string,
  steps: readonly Step[],
  place: Place,
): Promise<string | undefined> {
  await using reader = openReader({
    TABERN_API_KEY: place.stack.apiKey,
    TABERN_BASE_URL: place.stack.url,
    TABERN_BROWSER_ALLOW_CIDRS: '127.0.0.0/8',
  });
  const desk: Desk = { ...place, reader };
  if (page !== 'quickstart') await reader.run(commandOf(page, desk));
  const blocks = blocksOfPage(page);
  for (const [at, step] of steps.entries()) {
    if (!('run' in step)) continue;
    const block = must(blocks[at], step.begins);
    assert.ok(block.code.startsWith(step.begins), `${page}: no step for\n${block.code}`);
    const failure = await step.run(prepared(block, desk), desk).then(() => undefined, String);
    if (failure !== undefined) return `${step.begins}: ${failure}`;
  }
  return undefined;
}

function blocksOfPage(page: string): Block[] {
  return (allBlocks().get(page) ?? []).filter(({ language }) => !NO_PROGRAM.has(language));
}

/** Other pages use the command of the quickstart; deployment stays in the clone. */
function commandOf(page: string, desk: Desk): string {
  const blocks = must(allBlocks().get('quickstart'), 'quickstart');
  const block = blocks.find(({ code }) => code.startsWith('alias'));
  const code = prepared(must(block, 'the alias'), desk);
  return page === 'deployment' ? code.replace(/^mkdir .*$/m, '') : code;
}
