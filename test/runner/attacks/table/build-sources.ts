/** Through files that the bundler reads. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { BUILT, type BuildAttack, mapOf, unbuilt } from '../lab/build-attack.ts';

const NAMED = "import './a.js';";
const mapped = (map: (canary: string) => object): Pick<BuildAttack, 'files'> => ({
  files: ({ canary }) => ({
    'index.ts': NAMED,
    'a.js': `globalThis.a = 1;${mapOf(map(canary))}`,
  }),
});
const V3 = { version: 3, mappings: 'AAAA' };
const importing = (name: (canary: string) => string): Pick<BuildAttack, 'files'> => ({
  files: ({ canary }) => ({
    'index.ts': `import x from ${JSON.stringify(name(canary))}; console.debug(x);`,
  }),
});

export const sources: readonly BuildAttack[] = [
  {
    name: 'read a file of the machine as the source of a source map, by a URL',
    ...mapped((canary) => ({ ...V3, sources: [`file://${canary}`] })),
    ending: BUILT,
  },
  {
    name: 'the same by a path with `..`, and by sourceRoot',
    ...mapped((canary) => ({
      ...V3,
      sourceRoot: '/',
      sources: [`../../../../../../../..${canary}`],
    })),
    ending: BUILT,
  },
  {
    name: 'the same in the sections of a map',
    ...mapped((canary) => ({
      version: 3,
      sections: [{ offset: { line: 0, column: 0 }, map: { ...V3, sources: [`file://${canary}`] } }],
    })),
    ending: BUILT,
  },
  {
    name: 'the same in a map file',
    files: ({ canary }) => ({
      'index.ts': NAMED,
      'a.js': 'globalThis.a = 1;\n//# sourceMappingURL=a.js.map',
      'a.js.map': JSON.stringify({ ...V3, sources: [`file://${canary}`] }),
    }),
    ending: BUILT,
  },
  {
    name: 'read a file of the machine as a source map',
    files: ({ canary }) => ({
      'index.ts': NAMED,
      'a.js': `globalThis.a = 1;\n//# sourceMappingURL=file://${canary}`,
    }),
    ending: BUILT,
  },
  {
    name: 'import a file by its path',
    ...importing((canary) => canary),
    ending: unbuilt(/bundled/),
  },
  {
    name: 'import a file by a URL',
    ...importing((canary) => `file://${canary}`),
    ending: unbuilt(/bundled/),
  },
  {
    name: 'import a file by a path with `..`',
    ...importing((canary) => `./../../../../../../../..${canary}`),
    ending: unbuilt(/bundled/),
  },
  {
    name: 'import a file by the imports of deno.json',
    files: ({ canary }) => ({
      'index.ts': `import x from 'x'; console.debug(x);`,
      'deno.json': JSON.stringify({ imports: { x: `file://${canary}` } }),
    }),
    ending: unbuilt(/bundled/),
  },
  {
    name: 'read a file as the import map of deno.json',
    files: ({ canary }) => ({
      'deno.json': JSON.stringify({ importMap: `../../../../../..${canary}` }),
    }),
    ending: unbuilt(/importMap must name a file of the project/),
  },
  {
    name: 'extend a file in tsconfig.json, and map paths to it',
    files: ({ canary }) => ({
      'index.ts': `import x from 'x'; console.debug(x);`,
      'tsconfig.json': JSON.stringify({
        extends: canary,
        compilerOptions: { paths: { x: [canary] } },
      }),
    }),
    ending: unbuilt(/bundled/),
  },
  {
    name: 'import a package above the directory of the build',
    files: () => ({ 'index.ts': `import { leak } from 'above'; console.debug(leak);` }),
    beside: {
      'node_modules/above/package.json': '{"type": "module", "main": "index.js"}',
      'node_modules/above/index.js': `export const leak = 'of the machine';`,
    },
    ending: unbuilt(/bundled/),
  },
  {
    name: 'publish a link to a file of the machine',
    files: () => ({ 'index.ts': `import x from './x.json'; console.debug(x);` }),
    prepare: async (dir, { canary }) => symlinkSync(canary, join(dir, 'x.json')),
    ending: unbuilt(/leads outside the project/),
  },
  {
    name: 'publish a link as node_modules, or as the bundle',
    files: () => ({ 'index.ts': `import x from 'dir'; console.debug(x);` }),
    prepare: async (dir, { canary }) => {
      mkdirSync(join(dir, 'node_modules'));
      symlinkSync(join(canary, '..'), join(dir, 'node_modules/dir'));
    },
    ending: unbuilt(/bundled/),
  },
];
