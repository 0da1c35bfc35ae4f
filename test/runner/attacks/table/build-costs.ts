/** Files that are expensive to read do not delay others. */
import { randomBytes } from 'node:crypto';
import { BUILT, type BuildAttack, deepArchive, unbuilt } from '../lab/build-attack.ts';

const MIB = 1024 * 1024;
/** Does not compress: without it an archive is refused for its compression ratio. */
const NOISE = randomBytes(512 * 1024).toString('hex');
const wide = (bytes: number): string =>
  `{"noise": "${NOISE}", "a": [${'[],'.repeat(bytes / 3)}[]]}`;
const deep = (levels: number): string =>
  `{"noise": "${NOISE}", "a": ${'['.repeat(levels)}${']'.repeat(levels)}}`;

export const costs: readonly BuildAttack[] = [
  ...(['package.json', 'deno.json'] as const).map(
    (file): BuildAttack => ({
      name: `a ${file} of 24 MiB`,
      files: () => ({ [file]: wide(24 * MIB) }),
      ending: unbuilt(new RegExp(`${file} is larger than 1 MiB`)),
    }),
  ),
  {
    name: 'a lock file of 24 MiB',
    files: () => ({
      'package.json': '{"dependencies": {"a": "1"}}',
      'package-lock.json': wide(24 * MIB),
    }),
    ending: unbuilt(/package-lock\.json is larger than 16 MiB/),
  },
  {
    name: 'a lock file of endless nesting',
    files: () => ({
      'package.json': '{"dependencies": {"a": "1"}}',
      'package-lock.json': deep(7 * MIB),
    }),
    ending: unbuilt(/package-lock\.json nests deeper/),
  },
  {
    name: 'a lock file of pnpm with paths as keys',
    files: () => ({
      'package.json': '{"dependencies": {"a": "1"}}',
      'pnpm-lock.yaml': `# ${NOISE}\na: '${'(file:x'.repeat(2 * MIB)}'\n`,
    }),
    ending: unbuilt(/names too many paths at once/),
  },
  {
    name: 'a path of 16,000 folders',
    files: () => ({}),
    archive: () => deepArchive('a/'.repeat(16_000)),
    ending: unbuilt(/has more than 1024 characters/),
  },
  {
    name: 'sources that crash the bundler',
    files: () => ({ 'index.ts': `// ${NOISE}\nexport const x = ${'['.repeat(8e6)}` }),
    ending: unbuilt(/ran out of memory or crashed/),
  },
  {
    name: 'a bundle above the size limit',
    files: () => ({
      'index.ts': `import text from './a.txt'; console.debug(text);`,
      'a.txt': NOISE + 'x'.repeat(33 * MIB),
    }),
    ending: unbuilt(/the limit is 32768 KiB/),
  },
  {
    name: 'a source with a hundred thousand warnings',
    files: () => ({ 'index.ts': `// ${NOISE}\n${'if (typeof x === "nothing") ;\n'.repeat(1e5)}` }),
    ending: BUILT,
  },
];
