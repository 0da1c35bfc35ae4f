/** The fenced blocks of README.md and of the guide, in order. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const GUIDE = 'gateway/web/docs/guide';
const FENCE = /^```(\w*)\n([\s\S]*?)^```$|^##+ (.*)$/gm;

/** `page`: the file's name without `.md`. `section`: the heading above. */
export type Block = { page: string; section: string; language: string; code: string };

/** By page: README first, then the guide. */
export function allBlocks(): Map<string, Block[]> {
  const guide = readdirSync(join(ROOT, GUIDE)).map((name) => join(GUIDE, name));
  const pages = ['README.md', ...guide].map((path) => {
    const page = path.replace(/^.*\/|\.md$/g, '').replace(/\.md$/, '');
    return [page, blocksOf(page, readFileSync(join(ROOT, path), 'utf8'))] as const;
  });
  return new Map(pages);
}

export function blocksOf(page: string, text: string): Block[] {
  const blocks: Block[] = [];
  let section = '';
  for (const [, language = '', code, heading] of text.matchAll(FENCE)) {
    if (heading !== undefined) section = heading;
    else blocks.push({ page, section, language, code: code ?? '' });
  }
  return blocks;
}
