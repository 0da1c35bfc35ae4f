/** The command table and the settings as sections of README.md, between their marks. */
import { SETTINGS } from '../../proto/common/settings/table.ts';
import { described } from '../../proto/common/settings/types.ts';
import { SECTIONS } from './table.ts';

/** Returns the text with both sections updated. Throws when a mark is missing. */
export function withReference(readme: string): string {
  return between(between(readme, 'commands', commands()), 'options', options());
}

function commands(): string {
  return SECTIONS.map(({ heading, commands }) => {
    const rows = commands.map(
      ({ usage, description }) => `| \`tabern ${cell(usage)}\` | ${cell(description)} |`,
    );
    return [`| ${heading.replace(':', '')} | |`, '| --- | --- |', ...rows].join('\n');
  }).join('\n\n');
}

function options(): string {
  const rows = SETTINGS.map((row) => {
    const { name, default: value, isSecret } = row;
    const fallback = value === undefined ? '' : `\`${value}\``;
    const note = isSecret ? ' (secret)' : '';
    return `| \`TABERN_${name}\` | ${fallback} | ${cell(described(row))}${note} |`;
  });
  return ['| option | default | what it is |', '| --- | --- | --- |', ...rows].join('\n');
}

/** Escapes bars, which end a table cell, and angle brackets, which Markdown reads as HTML. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replace(/(?:unix:)?<data>[^;,\s]*/g, '`$&`');
}

function between(text: string, name: string, part: string): string {
  const [start, end] = [`<!-- ${name}: npm run reference -->`, `<!-- /${name} -->`];
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`README.md has no ${start} ... ${end}`);
  return `${text.slice(0, from + start.length)}\n\n${part}\n\n${text.slice(to)}`;
}
