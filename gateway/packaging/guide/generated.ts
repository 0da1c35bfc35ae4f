/**
 * The parts of the guide that the code knows. In a page, a line `{{settings}}` is replaced by the
 * part of that name.
 */
import { readFileSync } from 'node:fs';
import { SETTINGS } from '../../../proto/common/settings/table.ts';
import { described } from '../../../proto/common/settings/types.ts';
import { REASONS, type Reason } from '../../../proto/rpc/errors.ts';
import { SECTIONS } from '../../cli/table.ts';
import { ADVICE } from './advice.ts';

const PARTS: Readonly<Record<string, () => string>> = { commands, settings, errors, compose };
const COMPOSE = new URL('../deploy/compose.yaml', import.meta.url);
const DIRECTIVE = /^\{\{(\w+)\}\}$/gm;

/** The page with its parts. Throws for an unknown part. */
export function withParts(page: string): string {
  return page.replace(DIRECTIVE, (_, name: string) => {
    const part = Object.hasOwn(PARTS, name) ? PARTS[name] : undefined;
    if (part === undefined) throw new Error(`{{${name}}} is no part: ${Object.keys(PARTS)}`);
    return part();
  });
}

/** Every command, a table for each section of `tabern --help`. */
function commands(): string {
  return SECTIONS.map(({ heading, commands: own }) => {
    const rows = own.map(({ usage, description }) => [`\`tabern ${usage}\``, description]);
    return `### ${heading.replace(':', '')}\n\n${table(['Command', 'Description'], rows)}`;
  }).join('\n\n');
}

/** Every setting, with its range and default. */
function settings(): string {
  const rows = SETTINGS.map((row) => {
    const { name, default: value, isSecret } = row;
    const fallback = value === undefined ? '' : `\`${value}\``;
    return [`\`TABERN_${name}\``, fallback, `${described(row)}${isSecret ? ' (secret)' : ''}`];
  });
  return table(['Variable', 'Default', 'Description'], rows);
}

/** Every error that a client can receive, by HTTP status. */
function errors(): string {
  const reasons = Object.keys(REASONS) as Reason[];
  const rows = reasons
    .sort((a, b) => REASONS[a].http - REASONS[b].http)
    .map((reason) => [String(REASONS[reason].http), `\`${reason}\``, ADVICE[reason]]);
  return table(['Status', 'Reason', 'What to do'], rows);
}

/** The file for Docker Compose. */
function compose(): string {
  return `\`\`\`yaml\n${readFileSync(COMPOSE, 'utf8').trim()}\n\`\`\``;
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  return [heads, heads.map(() => '---'), ...rows.map((row) => row.map(cell))]
    .map((row) => `| ${row.join(' | ')} |`)
    .join('\n');
}

/** Escapes bars, which end a cell, and angle brackets outside of code, which open HTML. */
function cell(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part, index) => (index % 2 === 1 ? part : part.replaceAll('<', '&lt;')))
    .join('')
    .replace(/(?<!\\)\|/g, '\\|');
}
