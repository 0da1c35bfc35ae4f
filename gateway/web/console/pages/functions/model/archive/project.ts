/** The project in a zip: what is published of it, and its entry file. */
import type { ProjectFile } from './tar.ts';
import { type ZipEntry, zipBytes, zipEntries } from './zip.ts';

export type Project = {
  files: ProjectFile[];
  /** Files that are left out: dependencies, secrets, build outputs. */
  leftOut: number;
  /** Source files that may be the entry, the likely one first. */
  entries: string[];
};

/** As `tabern publish` leaves them out, and what macOS adds. */
const LEFT_OUT = new RegExp(
  [
    '^(?:tabern_data|dist|build|__MACOSX)/',
    String.raw`(?:^|/)(?:node_modules|\.git|\.browserbase)/`,
    String.raw`(?:^|/)(?:\.env[^/]*|\.npmrc|\.DS_Store|[^/]*\.log)(?:/|$)`,
  ].join('|'),
);
const SOURCE = /\.[cm]?[jt]s$/;
const NO_ENTRY = /\.d\.[cm]?ts$|\.c[jt]s$|(?:^|\/)[^/]*\.(?:test|spec|config)\.[^/]*$/;
const LIKELY = ['index.ts', 'index.mts', 'index.js', 'index.mjs', 'src/index.ts', 'src/index.js'];

/** Throws an Error with a sentence for a person. */
export async function projectOf(zip: Blob): Promise<Project> {
  const { entries, leftOut } = published(await zipEntries(zip));
  const files: ProjectFile[] = [];
  for (const { name, entry } of entries) files.push({ name, bytes: await zipBytes(zip, entry) });
  return { files, leftOut, entries: entryFiles(files.map(({ name }) => name)) };
}

/** The files by their names within the project: a folder around all of them is not part of it. */
export function published(all: readonly ZipEntry[]) {
  const files = all.filter(({ isFolder, name }) => !isFolder && !name.startsWith('__MACOSX/'));
  const root = rootOf(files.map(({ name }) => name));
  const named = files.map((entry) => ({ name: entry.name.slice(root.length), entry }));
  const entries = named.filter(({ name }) => !LEFT_OUT.test(name));
  if (entries.length === 0) throw new Error('the zip has no file to publish');
  const twice = firstTwice(entries.map(({ name }) => name));
  if (twice !== undefined) throw new Error(`the zip has ${twice} twice`);
  return { entries, leftOut: all.filter(({ isFolder }) => !isFolder).length - entries.length };
}

/** Source files of the project, the likely entry first. */
export function entryFiles(names: readonly string[]): string[] {
  const sources = names.filter((name) => SOURCE.test(name) && !NO_ENTRY.test(name));
  const rank = (name: string) => {
    const place = LIKELY.indexOf(name);
    return place < 0 ? LIKELY.length + name.split('/').length : place;
  };
  return sources.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

function rootOf(names: readonly string[]): string {
  const folder = /^[^/]+\//.exec(names[0] ?? '')?.[0];
  if (folder === undefined || LEFT_OUT.test(folder)) return '';
  return names.every((name) => name.startsWith(folder)) ? folder : '';
}

function firstTwice(names: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return names.find((name) => seen.size === seen.add(name).size);
}
