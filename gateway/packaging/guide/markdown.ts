/** Markdown to HTML: anchors at headings, coloured code, and what search and navigation need. */
import { createRequire } from 'node:module';
import { Marked, type Tokens } from 'marked';

/** Its own types load those of the DOM, which contradict Node's. */
type Highlighter = {
  getLanguage(name: string): object | undefined;
  highlight(code: string, options: { language: string }): { value: string };
};
const hljs = createRequire(import.meta.url)('highlight.js') as Highlighter;

export type Heading = { level: number; id: string; text: string };
/** `sections`: the plain text below each heading, for search. */
export type Rendered = {
  html: string;
  title: string;
  headings: Heading[];
  sections: { id: string; heading: string; text: string }[];
};

/** Renders a page. `link` translates the target of each link. */
export function rendered(markdown: string, link: (href: string) => string): Rendered {
  const headings: Heading[] = [];
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }: Tokens.Heading) {
        const plain = plainOf(text);
        const id = idOf(plain, headings);
        headings.push({ level: depth, id, text: plain });
        const anchor = `<a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`;
        const body = this.parser.parseInline(tokens);
        return `<h${depth} id="${id}">${body}${depth === 1 ? '' : ` ${anchor}`}</h${depth}>\n`;
      },
      code({ text, lang = '' }: Tokens.Code) {
        const language = hljs.getLanguage(lang) ? lang : 'plaintext';
        const { value } = hljs.highlight(text, { language });
        return `<pre><code class="hljs language-${language}">${value}</code></pre>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        return `<a href="${escaped(link(href))}">${this.parser.parseInline(tokens)}</a>`;
      },
      table(token: Tokens.Table) {
        const cells = (row: Tokens.TableCell[], tag: string) =>
          row.map((one) => `<${tag}>${this.parser.parseInline(one.tokens)}</${tag}>`).join('');
        const rows = token.rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('\n');
        const head = `<thead><tr>${cells(token.header, 'th')}</tr></thead>`;
        return `<div class="table"><table>${head}<tbody>${rows}</tbody></table></div>\n`;
      },
    },
  });
  const html = marked.parse(markdown, { async: false });
  const title = headings.find(({ level }) => level === 1)?.text;
  if (title === undefined) throw new Error(`a page without a title: ${markdown.slice(0, 80)}`);
  return { html, title, headings, sections: sectionsOf(markdown, headings) };
}

function sectionsOf(markdown: string, headings: readonly Heading[]): Rendered['sections'] {
  const own = [...headings];
  const parts = new Marked().lexer(markdown);
  const sections: Rendered['sections'] = [];
  for (const token of parts) {
    if (token.type === 'heading') {
      const { id = '', text = '' } = own.shift() ?? {};
      sections.push({ id, heading: text, text: '' });
    } else {
      const last = sections.at(-1);
      const text = token.type === 'code' ? token.text : plainOf(token.raw);
      if (last) last.text = `${last.text} ${text}`.trim();
    }
  }
  return sections;
}

/** GitHub's form, so that links work in both places. */
function idOf(text: string, taken: readonly Heading[]): string {
  const id = text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
  const same = taken.filter((one) => one.id === id || one.id.startsWith(`${id}-`)).length;
  return same === 0 ? id : `${id}-${same}`;
}

function plainOf(markdown: string): string {
  return markdown
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*|]/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}
