/**
 * Which files of a project are not published: what never is, then .gitignore's lines as simple
 * patterns. Pure.
 */

/** Secrets, what is made from the sources, and the data of a service that was started here. */
const ALWAYS = [
  'node_modules/',
  '.git/',
  '.browserbase/',
  '/tabern_data/',
  '.env*',
  '*.log',
  '/dist/',
  '/build/',
  '.npmrc',
];

type Rule = { pattern: RegExp; isKept: boolean; isFolder: boolean };

/**
 * Tells of a path relative to the project, with '/' between its parts, whether it stays at home.
 */
export function ignored(gitignore: string): (path: string, isFolder: boolean) => boolean {
  const always = ALWAYS.map(rule);
  const own = gitignore
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map(rule);
  const matches = (path: string, isFolder: boolean) => (one: Rule) =>
    (isFolder || !one.isFolder) && one.pattern.test(path);
  return (path, isFolder) => {
    if (always.some(matches(path, isFolder))) return true;
    // As git: the last line that matches decides.
    const last = own.findLast(matches(path, isFolder));
    return last !== undefined && !last.isKept;
  };
}

function rule(line: string): Rule {
  const isKept = line.startsWith('!');
  const text = isKept ? line.slice(1) : line;
  const isFolder = text.endsWith('/');
  const name = text.replace(/^\//, '').replace(/\/$/, '');
  // A slash in the middle or in front anchors a line to the project's root.
  const isRooted = text.startsWith('/') || name.includes('/');
  return { pattern: new RegExp(`${isRooted ? '^' : '(?:^|/)'}${glob(name)}$`), isKept, isFolder };
}

function glob(name: string): string {
  return name
    .split(/(\*\*\/|\/\*\*$|\*\*|\*|\?)/)
    .map((part) => {
      if (part === '**/') return '(?:.*/)?';
      if (part === '/**') return '/.*';
      if (part === '**') return '.*';
      if (part === '*') return '[^/]*';
      if (part === '?') return '[^/]';
      return part.replace(/[.+^${}()|[\]\\]/g, '\\$&');
    })
    .join('');
}
