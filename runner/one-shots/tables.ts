/**
 * Turndown's rules for tables, as GitHub's markdown writes them: the first row is the head. A table
 * that contains another is layout: its cells are paragraphs. Each table is looked at once.
 */
import type TurndownService from 'turndown';

// biome-ignore lint/suspicious/noExplicitAny: the program has no types of documents.
type Node = any;
type Table = { isLayout: boolean; head: Node };

const PARTS = ['thead', 'tbody', 'tfoot'] as const;

export function addTables(turndown: TurndownService): void {
  const known = new WeakMap<Node, Table>();
  const tableOf = (node: Node): Table => {
    let table = node;
    while (table.parentNode && table.nodeName !== 'TABLE') table = table.parentNode;
    const found = known.get(table) ?? {
      isLayout: table.querySelector('table') !== null,
      head: table.querySelector('tr'),
    };
    known.set(table, found);
    return found;
  };
  turndown.addRule('cell', {
    filter: ['td', 'th'],
    replacement: (content, node) => {
      if (tableOf(node).isLayout) return `\n\n${content.trim()}\n\n`;
      return ` ${content.trim().replace(/\s+/g, ' ').replaceAll('|', '\\|')} |`;
    },
  });
  turndown.addRule('row', {
    filter: 'tr',
    replacement: (content, node: Node) => {
      const { isLayout, head } = tableOf(node);
      if (isLayout) return content;
      const isHead = head === node;
      return `\n|${content}${isHead ? `\n|${' --- |'.repeat(node.children.length)}` : ''}`;
    },
  });
  turndown.addRule('part', { filter: [...PARTS], replacement: (content) => content });
  turndown.addRule('table', {
    filter: 'table',
    replacement: (content) => `\n\n${content.trim()}\n\n`,
  });
}
