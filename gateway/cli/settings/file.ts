/** The settings file: JSON, an object with settings as members. */
import { readFileSync } from 'node:fs';
import { ConfigError } from '../../../proto/common/env.ts';
import { SETTINGS } from '../../../proto/common/settings/table.ts';
import { memberOf } from '../../../proto/common/settings/types.ts';
import { nearest } from '../../../proto/common/settings/unknown.ts';

type Member = {
  /** Of the setting. */
  name: string;
  value: string;
  /** How an error names it: `port in tabern.json:3`. */
  label: string;
};

const NAMES: ReadonlyMap<string, string> = new Map(
  SETTINGS.filter(({ name }) => name !== 'CONFIG').map(({ name }) => [memberOf(name), name]),
);
/** Of valid JSON: texts and structure. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[[\]{}:\n]/g;

/** Throws ConfigError. */
export function settingsFile(path: string): Member[] {
  const { text, members } = parsed(path);
  const lines = linesOf(text);
  return Object.entries(members).map(([member, value]) => {
    const place = `${path}:${lines.get(member)}`;
    const name = NAMES.get(member);
    if (name === undefined) {
      const near = nearest(member, [...NAMES.keys()]);
      const hint = near === undefined ? '' : `; did you mean ${JSON.stringify(near)}?`;
      throw new ConfigError(`${place} has ${JSON.stringify(member)}, which is no setting${hint}`);
    }
    const label = `${member} in ${place}`;
    return { name, value: textOf(value, label), label };
  });
}

function parsed(path: string): { text: string; members: object } {
  let text = '';
  let members: unknown;
  try {
    text = readFileSync(path, 'utf8');
    members = JSON.parse(text);
  } catch (cause) {
    const why = cause instanceof SyntaxError ? `is not JSON${lineIn(cause)}` : 'cannot be read';
    throw new ConfigError(`the settings file ${path} ${why}`, { cause });
  }
  if (typeof members !== 'object' || members === null || Array.isArray(members)) {
    throw new ConfigError(`the settings file ${path} must be an object, such as {"port": 8080}`);
  }
  return { text, members };
}

/** The line in V8's message, the rest of which may quote a secret. */
function lineIn({ message }: SyntaxError): string {
  const [, line] = /\(line (\d+) column \d+\)$/.exec(message) ?? [];
  return line === undefined ? '' : `: see line ${line}`;
}

/** The line of each member of the outermost object; of a repeated one the last, as in its value. */
function linesOf(text: string): Map<string, number> {
  const lines = new Map<string, number>();
  let [depth, line, last] = [0, 1, '""'];
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === '\n') line += 1;
    else if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
    else if (token !== ':') last = token;
    else if (depth === 1) lines.set(JSON.parse(last), line);
  }
  return lines;
}

function textOf(value: unknown, label: string): string {
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join(',');
  throw new ConfigError(`${label} must be a text, a number or a list of texts`);
}
