/** The frame of a page of the guide: navigation, content, headings. */
import type { Rendered } from './markdown.ts';

export type Page = Rendered & { name: string };
type Group = { heading: string; pages: readonly Page[] };

/** The whole document of `page`. */
export function pageHtml(page: Page, groups: readonly Group[]): string {
  const all = groups.flatMap(({ pages }) => pages);
  const at = all.indexOf(page);
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>${page.title} - tabern</title>
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href="/docs/guide.css" />
    <script src="/docs/theme.js"></script>
    <script src="/docs/minisearch.js" defer></script>
    <script src="/docs/guide.js" defer></script>
  </head>
  <body>
    <header>
      <a class="name" href="/docs">tabern</a>
      <div class="search">
        <input id="search" type="search" autocomplete="off" spellcheck="false"
          placeholder="Search the docs ( / )" aria-label="Search the docs" />
        <ol id="found" hidden></ol>
      </div>
      <nav aria-label="Documents">
        <a href="/docs">Guide</a>
        <a href="/docs/api">API reference</a>
        <button id="theme" type="button" aria-label="Switch between light and dark">◐</button>
      </nav>
    </header>
    <div class="columns">
      <details class="pages" open>
        <summary>Pages</summary>
        <nav aria-label="Pages">${groups.map((group) => groupHtml(group, page)).join('')}</nav>
      </details>
      <main>
        <article>
${page.html}
        </article>
        <footer>${neighbour(all[at - 1], 'Previous')}${neighbour(all[at + 1], 'Next')}</footer>
      </main>
      <nav class="headings" aria-label="On this page">${headingsHtml(page)}</nav>
    </div>
  </body>
</html>
`;
}

/** The address of a page. */
export function pathOf(name: string): string {
  return `/docs/${name}`;
}

function groupHtml({ heading, pages }: Group, current: Page): string {
  const items = pages.map((one) => {
    const mark = one === current ? ' aria-current="page"' : '';
    return `<li><a href="${pathOf(one.name)}"${mark}>${one.title}</a></li>`;
  });
  return `<p>${heading}</p><ul>${items.join('')}</ul>`;
}

function headingsHtml({ headings }: Page): string {
  const items = headings
    .filter(({ level }) => level === 2 || level === 3)
    .map(({ level, id, text }) => `<li class="level${level}"><a href="#${id}">${text}</a></li>`);
  return items.length === 0 ? '' : `<p>On this page</p><ul>${items.join('')}</ul>`;
}

function neighbour(page: Page | undefined, word: string): string {
  if (page === undefined) return '<span></span>';
  return `<a href="${pathOf(page.name)}"><small>${word}</small>${page.title}</a>`;
}
