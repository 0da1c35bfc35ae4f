/**
 * The repository follows the rules of support/layers/layers.ts, and each rule finds its violation,
 * planted in an empty tree.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { brokenRules } from './support/layers/layers.ts';
import { MAY_READ_WALL_CLOCK, wallClockIn } from './support/layers/wall-clock.ts';
import { tempDirectory, writeTree } from './support/temp.ts';

const WALL = 'reads the wall clock by ';
const REPOSITORY = fileURLToPath(new URL('..', import.meta.url));

/** Planted file -> the words of its finding. */
const VIOLATIONS: [path: string, text: string, says: string][] = [
  ['proto/a.ts', `import { x } from '../core/x.ts';`, 'may not import core/x.ts'],
  ['core/a.ts', `import { x } from '../gateway/x.ts';`, 'may not import gateway/x.ts'],
  ['core/a.ts', `import type { x } from '../runner/x.ts';`, 'may not import runner/x.ts'],
  ['core/a.ts', `export { x } from '../test/support/x.ts';`, 'may not import test/support/x.ts'],
  ['core/a.ts', `export * from '../runner/x.ts';`, 'may not import runner/x.ts'],
  ['core/a.ts', `import {\n  x,\n} from '../runner/x.ts';`, 'may not import runner/x.ts'],
  ['core/a.ts', `import '../runner/x.ts';`, 'may not import runner/x.ts'],
  ['core/a.ts', `const x = await import('../runner/x.ts');`, 'may not import runner/x.ts'],
  ['core/a.ts', `let x: import('../runner/x.ts').X;`, 'may not import runner/x.ts'],
  [
    'core/a.ts',
    `new Worker(new URL('../runner/x.ts', import.meta.url));`,
    'may not import runner/',
  ],
  ['core/a.ts', `const x = await import(name);`, 'whose name is not written there'],
  ['core/deep/a.ts', `import { x } from '../../runner/x.ts';`, 'may not import runner/x.ts'],
  ['gateway/a.ts', `import { x } from '../core/x.ts';`, 'may not import core/x.ts'],
  ['gateway/a.ts', `await import('../core/main.ts');`, 'may not import core/main.ts'],
  [
    'gateway/cli/roles/serve.ts',
    `import { x } from '../../../core/main.ts';`,
    'may not import core/main.ts',
  ],
  [
    'gateway/cli/roles/serve.ts',
    `await import('../../../core/common/ids.ts');`,
    'may not import core/common/ids.ts',
  ],
  [
    'gateway/cli/a.ts',
    `import { x } from '../../runner/cli/x.ts';`,
    'may not import runner/cli/x.ts',
  ],
  [
    'gateway/web/console/app/a.tsx',
    `import { x } from '../../../http/x.ts';`,
    'may not import gateway/http/x.ts',
  ],
  ['gateway/web/console/a.ts', `import { x } from '../../../proto/x.ts';`, 'may not import proto/'],
  ['runner/a.ts', `import { x } from '../gateway/x.ts';`, 'may not import gateway/x.ts'],
  ['runner/sdk/a.ts', `import { x } from '../../proto/x.ts';`, 'may not import proto/x.ts'],
  ['runner/sdk/a.ts', `import { x } from '../loop.ts';`, 'may not import runner/loop.ts'],
  ['runner/sdk/a.ts', `import { x } from 'node:fs';`, 'may not import node:fs'],
  ['core/a.ts', 'const until = Date.now() + 1_000;', WALL],
  ['gateway/a.ts', 'const clock = Date.now;', WALL],
  ['runner/a.ts', 'const startedAt = new Date().getTime();', WALL],
  ['proto/a.ts', 'const says = Date();', WALL],
  ['runner/sessions/a.js', 'const from = Date . now();', WALL],
  ['runner/sdk/a.ts', `import { x } from 'ajv';`, 'may not import the package ajv'],
  ['runner/host/a.ts', `import { x } from '../../proto/x.ts';`, 'may not import proto/x.ts'],
  ['runner/host/a.ts', `import { x } from 'pino';`, 'may not import the package pino'],
  ['runner/resume/a.ts', `import { x } from '../../proto/x.ts';`, 'may not import proto/x.ts'],
  ['runner/resume/a.ts', `import W from 'ws';`, 'may not import the package ws'],
  ['core/a.ts', `import D from 'better-sqlite3';`, 'may not import the package better-sqlite3'],
  ['core/a.ts', `import P from 'postgres';`, 'may not import the package postgres'],
  ['core/maintenance/a.ts', `import { x } from '../store/postgres/x.ts';`, 'core/store/postgres/'],
  ['core/a.ts', `import Koa from 'koa';`, 'may not import the package koa'],
  ['runner/a.ts', `import R from '@koa/router';`, 'may not import the package @koa/router'],
  ['runner/a.ts', `import P from 'piscina';`, 'may not import the package piscina'],
  ['runner/a.ts', `import C from 'chrome-remote-interface';`, 'package chrome-remote-interface'],
  ['runner/a.ts', `import E from 'esbuild';`, 'may not import the package esbuild'],
  ['runner/a.ts', `import W from 'ws/wrapper.mjs';`, 'may not import the package ws'],
  ['gateway/a.ts', `import { x } from 'undici';`, 'may not import the package undici'],
  ['core/maintenance/a.ts', `import { x } from '../store/sqlite/x.ts';`, 'core/store/sqlite/x.ts'],
  ['core/a.ts', `import type { X } from './store/sqlite/deep/x.ts';`, 'may not import core/store'],
  ['core/delivery/a.ts', `import { x } from 'node:fs';`, 'is pure, so may not import node:fs'],
  ['core/delivery/a.ts', `import { x } from 'fs/promises';`, 'may not import fs/promises'],
  ['core/delivery/a.ts', `import { connect } from 'node:net';`, 'may only judge addresses'],
  ['core/delivery/a.ts', `const at = Date.now();`, 'may not use Date.now'],
  ['core/delivery/a.ts', `const at = new Date();`, 'may not use new Date()'],
  ['core/files/url-signature.ts', `const at = Math.random();`, 'may not use Math.random'],
  ['runner/sessions/log/recorder.ts', `setTimeout(f, 1);`, 'may not use setTimeout'],
  [
    'runner/browser/cdp/command-policy.ts',
    `import { x } from 'node:http';`,
    'may not import node:http',
  ],
  ['core/a.ts', `const home = process.env.HOME;`, 'reads process.env'],
  ['runner/a.ts', `const { env, argv } = process;`, 'reads process.env'],
  ['core/a.ts', 'f({ ...{ a, b } });', 'spreads an inline literal'],
  ['core/a.ts', `// ${'x'.repeat(98)}`, 'core/a.ts:1: 101 columns'],
  ['core/a.ts', functionOf(51), 'core/a.ts:1: long has 51 lines'],
  ['core/a.ts', `const x = {\n${indented(methodOf(51))}\n};`, 'core/a.ts:2: long has 51 lines'],
  [
    'core/a.ts',
    `const long = (x: number): void => {\n${'  x;\n'.repeat(49)}};`,
    'long has 51 lines',
  ],
  [
    'core/a.ts',
    '/** Source: proto/spec/a.md 2. */',
    'core/a.ts: cites proto/spec/a.md, which does not exist',
  ],
  [
    'gateway/README.md',
    'see core/x.ts',
    'gateway/README.md: cites core/x.ts, which does not exist',
  ],
  [
    'proto/a.proto',
    '// See gateway/a.md.',
    'proto/a.proto: cites gateway/a.md, which does not exist',
  ],
];

/** Texts that look like a violation and are none. */
const INNOCENT: [path: string, text: string][] = [
  ['core/a.ts', `import { x } from '../proto/x.ts';\nimport { y } from './deep/y.ts';`],
  ['core/a.ts', `// import { x } from '../runner/x.ts';\n/* process.env */`],
  ['core/store/sqlite/a.ts', `import Database from 'better-sqlite3';`],
  ['core/store/sqlite/deep/a.ts', `import { x } from '../x.ts';`],
  ['core/store/a.ts', `import { x } from './sqlite/x.ts';`],
  ['test/core/a.ts', `import { x } from '../../core/store/sqlite/x.ts';`],
  ['gateway/cli/a.ts', `await import('../../runner/cli/publish.ts');`],
  [
    'gateway/cli/roles/serve.ts',
    `await import('../../../core/main.ts');\nspawn({ env: process.env });`,
  ],
  ['gateway/webhooks/a.ts', `import { Agent } from 'undici';`],
  ['runner/config.ts', `read(process.env);`],
  ['gateway/web/console/app/a.tsx', `import { x } from '../data/x.ts';`],
  [
    'runner/host/a.ts',
    `import P from 'piscina';\nimport { x } from '../sdk/x.ts';\nawait import(p);`,
  ],
  ['core/delivery/a.ts', `import { createHmac } from 'node:crypto';\nnew Date(at);`],
  ['core/common/ids.ts', 'const at = Date.now();'],
  ['core/a.ts', `// Date.now\nnew Date(row.at); openDate();`],
  ['core/delivery/a.ts', `import { BlockList, isIP } from 'node:net';`],
  ['test/core/a.test.ts', `import { x } from '../../core/x.ts';\nimport D from 'better-sqlite3';`],
  ['core/a.ts', 'x;\n'.repeat(1_000)],
  ['core/a.ts', `f({ ...rest, ...(a && { a }) }); // ...{ a }`],
  ['core/a.ts', `// ${'x'.repeat(97)}`],
  ['core/a.ts', functionOf(50)],
  ['core/a.ts', `function outer() {\n${indented(functionOf(40))}\n${indented(functionOf(40))}\n}`],
  [
    'core/a.ts',
    "// core/a.ts, proto/gen/x.ts, core/*.ts, example.com/core/y.ts\nread('core/z.ts');",
  ],
  ['core/jail/README.md', 'a/core/x.ts, core/<noun>.ts'],
];

const layers = suite('layers');

layers('the repository has no violation', () => {
  const broken = brokenRules(REPOSITORY);
  assert.is(broken.length, 0, broken.join('\n'));
});

for (const [path, text, says] of VIOLATIONS) {
  const title = text.length > 60 ? says : text.replaceAll('\n', ' ');
  layers(`${path} is a violation with: ${title}`, async () => {
    const broken = await planted(path, text);
    assert.is(broken.length, 1, broken.join('\n'));
    assert.ok(broken[0]?.startsWith(path), broken[0]);
    assert.ok(broken[0]?.includes(says), broken[0]);
  });
}

for (const [path, text] of INNOCENT) {
  layers(`${path} is accepted with: ${text.slice(0, 60).replaceAll('\n', ' ')}`, async () => {
    assert.equal(await planted(path, text), []);
  });
}

layers('a circle of imports is a violation, of types too', async () => {
  const broken = await plantedAll({
    'core/a.ts': `import { b } from './b.ts';`,
    'core/b.ts': `import { c } from './deep/c.ts';`,
    'core/deep/c.ts': `import type { A } from '../a.ts';`,
    'core/d.ts': `import { a } from './a.ts';`,
  });
  assert.equal(broken, ['core/a.ts: a circle of imports: core/a.ts, core/b.ts, core/deep/c.ts']);
});

layers('folders that import from one another are a violation, at every depth', async () => {
  const broken = await plantedAll({
    'core/deep/a/x.ts': `import { y } from '../b/y.ts';`,
    'core/deep/b/y.ts': `export const y = 1;`,
    'core/deep/b/z.ts': `import type { X } from '../a/x.ts';`,
    'core/wide/w.ts': `import { x } from '../deep/a/x.ts';\nimport { v } from '../main.ts';`,
    'core/main.ts': `import { w } from './deep/a/x.ts';`,
  });
  assert.equal(broken, [
    'core/deep/a: imports back from a folder that it serves: core/deep/a, core/deep/b',
  ]);
});

layers('a folder of 20 entries is accepted, one of 21 is a violation', async () => {
  const filesOf = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`core/deep/f${n}.ts`, 'x;']));
  assert.equal(await plantedAll(filesOf(20)), []);
  assert.equal(await plantedAll({ ...filesOf(19), 'core/deep/a/b.ts': 'x;' }), []);
  assert.equal(await plantedAll(filesOf(21)), ['core/deep: holds 21 entries']);
  const series = Object.entries(filesOf(21)).map(([path, text]) => {
    return [path.replace('core/deep', 'core/store/sqlite/schema'), text];
  });
  assert.equal(await plantedAll(Object.fromEntries(series)), []);
});

layers('every file that may read the wall clock reads it', () => {
  const without = Object.keys(MAY_READ_WALL_CLOCK).filter((path) => {
    return wallClockIn(readFileSync(join(REPOSITORY, path), 'utf8')) === undefined;
  });
  assert.equal(without, []);
});

layers('generated, installed and fixture files are not checked', async () => {
  const text = `import D from 'better-sqlite3';`;
  assert.equal(await planted('proto/gen/a.ts', text), []);
  assert.equal(await planted('gateway/web/console/gen/a.js', text), []);
  assert.equal(await planted('runner/node_modules/a/a.js', text), []);
  assert.equal(await planted('test/support/projects/title/a.ts', functionOf(60)), []);
});

layers.run();

function planted(path: string, text: string): Promise<string[]> {
  return plantedAll({ [path]: text });
}

async function plantedAll(files: Record<string, string>): Promise<string[]> {
  await using dir = tempDirectory();
  for (const folder of ['proto', 'core', 'gateway', 'runner', 'test']) {
    mkdirSync(join(dir.path, folder));
  }
  writeTree(dir.path, files);
  return brokenRules(dir.path);
}

function functionOf(lines: number): string {
  return `function ${methodOf(lines)}`;
}

function methodOf(lines: number): string {
  return `long() {\n${'  x;\n'.repeat(lines - 2)}}`;
}

function indented(text: string): string {
  return text.replace(/^/gm, '  ');
}
