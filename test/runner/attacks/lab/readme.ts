/**
 * The table of README.md's section "Security", made of the attacks that the tests run.
 * `node test/runner/attacks/lab/readme.ts` writes it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KINDS } from '../table/all.ts';
import { type Ending, endingIn, type Place } from './attack.ts';

export const README = join(import.meta.dirname, '../../../../README.md');
const BEGIN = '<!-- made by test/runner/attacks/lab/readme.ts -->';
const END = '<!-- end of what is made -->';

const COLUMNS: Readonly<Record<Place, string>> = {
  bwrap: 'bwrap',
  landlock: 'landlock',
  deno: 'bwrap, Deno',
};
const PLACES = ['bwrap', 'landlock', 'deno'] as const;
const WORDS: Readonly<Record<Exclude<Ending['type'], 'open'>, string>> = {
  refused: 'refused',
  unbuilt: 'its own build fails',
  built: 'no harm done',
  fails: 'its own run fails',
  lost: "its project's process is lost",
  ended: 'ended when its time is over',
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

/** README with the table as it is now. Throws when it has lost its place. */
export function withTable(readme: string): string {
  const [begin, end] = [readme.indexOf(BEGIN), readme.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`README.md has no ${BEGIN} ... ${END}`);
  return `${readme.slice(0, begin)}${BEGIN}\n${attackTable()}\n${readme.slice(end)}`;
}

if (import.meta.main) writeFileSync(README, withTable(readFileSync(README, 'utf8')));
