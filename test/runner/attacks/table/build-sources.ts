/** Through what a bundler reads. */
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
    name: 'name a file of the machine as the source of a source map, as a URL',
    ...mapped((canary) => ({ ...V3, sources: [`file://${canary}`] })),
    ending: BUILT,
  },
  {
    name: 'the same by a path that climbs, and by sourceRoot',
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
    name: 'the same in a map beside the source',
    files: ({ canary }) => ({
      'index.ts': NAMED,
      'a.js': 'globalThis.a = 1;\n//# sourceMappingURL=a.js.map',
      'a.js.map': JSON.stringify({ ...V3, sources: [`file://${canary}`] }),
    }),
    ending: BUILT,
  },
  {
    name: 'take a file of the machine for the map of a source',
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
    name: 'import it by a URL',
    ...importing((canary) => `file://${canary}`),
    ending: unbuilt(/bundled/),
  },
  {
    name: 'import it by a path that climbs',
    ...importing((canary) => `./../../../../../../../..${canary}`),
    ending: unbuilt(/bundled/),
  },
  {
    name: "map an import to it in deno.json's imports",
    files: ({ canary }) => ({
      'index.ts': `import x from 'x'; console.debug(x);`,
      'deno.json': JSON.stringify({ imports: { x: `file://${canary}` } }),
    }),
    ending: unbuilt(/bundled/),
  },
  {
    name: "take it for deno.json's import map",
    files: ({ canary }) => ({
      'deno.json': JSON.stringify({ importMap: `../../../../../..${canary}` }),
    }),
    ending: unbuilt(/importMap must name a file of the project/),
  },
  {
    name: 'extend it in tsconfig.json, and map paths to it',
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
    name: 'import a package that lies above the directory of its build',
    files: () => ({ 'index.ts': `import { leak } from 'above'; console.debug(leak);` }),
    beside: {
      'node_modules/above/package.json': '{"type": "module", "main": "index.js"}',
      'node_modules/above/index.js': `export const leak = 'of the machine';`,
    },
    ending: unbuilt(/bundled/),
  },
  {
    name: 'bring a link to it',
    files: () => ({ 'index.ts': `import x from './x.json'; console.debug(x);` }),
    prepare: async (dir, { canary }) => symlinkSync(canary, join(dir, 'x.json')),
    ending: unbuilt(/leads outside the project/),
  },
  {
    name: 'bring a link in the place of node_modules, or of the bundle',
    files: () => ({ 'index.ts': `import x from 'dir'; console.debug(x);` }),
    prepare: async (dir, { canary }) => {
      mkdirSync(join(dir, 'node_modules'));
      symlinkSync(join(canary, '..'), join(dir, 'node_modules/dir'));
    },
    ending: unbuilt(/bundled/),
  },
];
