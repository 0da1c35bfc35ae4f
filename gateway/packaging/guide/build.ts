/**
 * Builds the guide, a step of the installation: from gateway/web/docs/guide/*.md the pages, the
 * search index, and llms.txt for language models, in gateway/web/docs/gen.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CONTENTS } from './contents.ts';
import { withParts } from './generated.ts';
import { rendered } from './markdown.ts';
import { type Page, pageHtml, pathOf } from './page.ts';

const SOURCE = new URL('../../web/docs/guide/', import.meta.url);
const OUT = new URL('../../web/docs/gen/', import.meta.url);

export type Built = { pages: Page[]; search: object[]; llms: string; llmsFull: string };

/**
 * The guide in memory, with other texts for the pages of `instead`. Throws for a link to a page or
 * heading that does not exist.
 */
export function buildGuide(instead: ReadonlyMap<string, string> = new Map()): Built {
  const names = CONTENTS.flatMap(({ pages }) => pages);
  const links: { from: string; href: string }[] = [];
  const sources = new Map(
    names.map((name) => [name, withParts(instead.get(name) ?? sourceOf(name))]),
  );
  const pages = [...sources].map(([name, source]) => ({
    name,
    ...rendered(source, (href) => {
      links.push({ from: name, href });
      return targetOf(href);
    }),
  }));
  for (const link of links) checkLink(link, pages);
  const search = pages.flatMap(({ name, title, sections }) =>
    sections.map(({ id, heading, text }) => ({
      id: `${pathOf(name)}#${id}`,
      page: title,
      heading,
      text,
    })),
  );
  return { pages, search, llms: llmsOf(pages), llmsFull: [...sources.values()].join('\n\n') };
}

function writeGuide({ pages, search, llms, llmsFull }: Built): void {
  mkdirSync(new URL('guide/', OUT), { recursive: true });
  const groups = CONTENTS.map(({ heading, pages: names }) => ({
    heading,
    pages: pages.filter(({ name }) => names.includes(name)),
  }));
  for (const page of pages) {
    writeFileSync(new URL(`guide/${page.name}.html`, OUT), pageHtml(page, groups));
  }
  writeFileSync(new URL('search.json', OUT), JSON.stringify(search));
  writeFileSync(new URL('llms.txt', OUT), llms);
  writeFileSync(new URL('llms-full.txt', OUT), llmsFull);
  const miniSearch = fileURLToPath(import.meta.resolve('minisearch')).replace(/dist\/.*$/, '');
  copyFileSync(`${miniSearch}dist/umd/index.js`, new URL('minisearch.js', OUT));
}

function sourceOf(name: string): string {
  return readFileSync(new URL(`${name}.md`, SOURCE), 'utf8');
}

/** `sessions.md#end` -> `/docs/sessions#end`; a file of the repository -> its page there. */
function targetOf(href: string): string {
  const [, name, anchor = ''] = /^([\w-]+)\.md(#.*)?$/.exec(href) ?? [];
  if (name !== undefined) return `${pathOf(name)}${anchor}`;
  return href;
}

function checkLink({ from, href }: { from: string; href: string }, pages: readonly Page[]): void {
  const [, name, anchor] = /^(?:([\w-]+)\.md)?(?:#(.*))?$/.exec(href) ?? [];
  if (name === undefined && anchor === undefined) return;
  const page = pages.find((one) => one.name === (name ?? from));
  const isThere = anchor === undefined || page?.headings.some(({ id }) => id === anchor);
  if (page === undefined || !isThere) throw new Error(`${from}.md: ${href} leads nowhere`);
}

function llmsOf(pages: readonly Page[]): string {
  const list = pages.map(({ name, title, sections }) => {
    const summary = sections[0]?.text.split(/(?<=\.)\s/)[0] ?? '';
    return `- [${title}](${pathOf(name)}): ${summary}`;
  });
  return `# tabern

> Self-hosted browser automation: remote Chrome sessions over CDP, functions invoked over HTTP,
> encrypted contexts, recordings and signed webhooks. The published Browserbase clients work
> unmodified.

## Guide

${list.join('\n')}

## Reference

- [REST](/openapi.json): the OpenAPI description of every operation
- [The whole guide as one text](/llms-full.txt)
`;
}

if (import.meta.main) writeGuide(buildGuide());
