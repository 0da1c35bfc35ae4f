/**
 * The table of attacks in the guide's page "Security", made of the attacks that the tests run.
 * `npm run reference` writes it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KINDS } from '../table/all.ts';
import { type Ending, endingIn, PLACES, type Place } from './attack.ts';

export const PAGE = join(import.meta.dirname, '../../../../gateway/web/docs/guide/security.md');
const BEGIN = '<!-- npm run reference -->';
const END = '<!-- /reference -->';

const COLUMNS: Readonly<Record<Place, string>> = {
  bwrap: 'bwrap',
  landlock: 'landlock',
  deno: 'bwrap, Deno',
};
const WORDS: Readonly<Record<Exclude<Ending['type'], 'open'>, string>> = {
  refused: 'refused',
  unbuilt: 'its own build fails',
  built: 'no harm done',
  fails: 'its own run fails',
  lost: "its project's process is lost",
  ended: 'ended at its time limit',
  gives: 'no harm done',
  unrun: 'not run there',
  own: "costs its project's process at most",
};

export function attackTable(): string {
  const rows = KINDS.flatMap(({ title, attacks }) => [
    `| **${title}** |${' |'.repeat(PLACES.length)}`,
    ...attacks.map((attack) => {
      const ends = PLACES.map((place) => {
        const ending = endingIn(attack, place);
        return ending.type === 'open' ? `**not stopped**: ${ending.why}` : WORDS[ending.type];
      });
      return `| ${[attack.name, ...ends].join(' | ')} |`;
    }),
  ]);
  const heads = ['attack', ...PLACES.map((place) => COLUMNS[place])];
  return [`| ${heads.join(' | ')} |`, `|${' --- |'.repeat(heads.length)}`, ...rows].join('\n');
}

/** The page with the table as it is now. Throws when its marks are missing. */
export function withTable(page: string): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`the page has no ${BEGIN} ... ${END}`);
  return `${page.slice(0, begin)}${BEGIN}\n${attackTable()}\n${page.slice(end)}`;
}

if (import.meta.main) writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8')));
