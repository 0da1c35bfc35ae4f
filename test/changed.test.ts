/** `npm test -- --changed` runs the files that a change can reach, and no others. */
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { equal, is } from 'uvu/assert';
import { changedFiles } from './support/run/changes.ts';
import { distancesTo, sourceGraph } from './support/run/reach.ts';
import { tempDirectory, writeTree } from './support/temp.ts';

const changed = suite('changed');

/** A small repository; each test file reaches a file of another kind. */
const TREE = {
  'package.json': '{}',
  'proto/tabern/v1/a.proto': 'import "tabern/v1/b.proto";',
  'proto/tabern/v1/b.proto': '',
  'core/deep.ts': 'export const deep = 1;',
  'core/near.ts': `import { deep } from './deep.ts';`,
  'core/type.ts': `import type { A } from '../proto/gen/tabern/v1/a.pb.ts';`,
  'core/thread.ts': `new Worker(new URL('./near.ts', import.meta.url));`,
  'core/sql/0001.sql': '',
  'core/store.ts': `readdirSync(new URL('./sql/', import.meta.url));`,
  'gateway/web/page.js': '',
  'gateway/page.ts': `read(new URL(\`./web/\${name}.js\`, import.meta.url));`,
  'test/near.test.ts': `import '../core/near.ts';`,
  'test/deep.test.ts': `import '../core/deep.ts';`,
  'test/thread.test.ts': `import '../core/thread.ts';`,
  'test/type.test.ts': `import '../core/type.ts';`,
  'test/sql.test.ts': `import '../core/store.ts';`,
  'test/page.test.ts': `import '../gateway/page.ts';`,
  'test/program.test.ts': `spawn(process.execPath, ['core/near.ts']);`,
  'test/fixture.test.ts': `const PROJECT = new URL('./support/projects/one', import.meta.url);`,
  'test/support/projects/one/index.ts': '',
  'test/readme.test.ts': `readFileSync(join(ROOT, 'README.md'));`,
  'README.md': '',
  LICENSE: '',
};

/** What changes -> the test files that reach it, the nearest first. */
const REACHED: [path: string, tests: string[]][] = [
  ['core/near.ts', ['near', 'program', 'thread']],
  ['core/deep.ts', ['deep', 'near', 'program', 'thread']],
  ['proto/tabern/v1/a.proto', ['type']],
  ['proto/tabern/v1/b.proto', ['type']],
  ['core/sql/0001.sql', ['sql']],
  ['gateway/web/page.js', ['page']],
  ['test/support/projects/one/index.ts', ['fixture']],
  ['test/near.test.ts', ['near']],
  ['README.md', ['readme']],
  ['LICENSE', []],
  [
    'package.json',
    ['deep', 'fixture', 'near', 'page', 'program', 'readme', 'sql', 'thread', 'type'],
  ],
];

for (const [path, tests] of REACHED) {
  changed(`a change of ${path} reaches: ${tests.join(', ') || 'no test'}`, async () => {
    await using dir = repository();
    const distances = distancesTo(sourceGraph(dir.path), [join(dir.path, path)]);
    const names = [...distances]
      .filter(([file]) => file.endsWith('.test.ts'))
      .sort(([a, near], [b, far]) => near - far || (a < b ? -1 : 1))
      .map(([file]) => /test\/(.*)\.test\.ts$/.exec(file)?.[1]);
    equal(names, tests);
  });
}

changed('changes are edited, added, committed and removed files', async () => {
  await using dir = repository();
  const at = (path: string) => join(dir.path, path);
  equal(changedFiles(dir.path), []);
  writeTree(dir.path, { 'core/new.ts': 'x;', 'core/deep.ts': 'edited;' });
  rmSync(at('core/near.ts'));
  const expected = ['core/deep.ts', 'core/near.ts', 'core/new.ts'].map(at);
  equal(changedFiles(dir.path).sort(), expected);
  commit(dir.path, 'second');
  equal(changedFiles(dir.path), []);
  equal(changedFiles(dir.path, 'HEAD~1').sort(), expected);
});

changed('a removed file reaches the files that import it', async () => {
  await using dir = repository();
  rmSync(join(dir.path, 'core/deep.ts'));
  const distances = distancesTo(sourceGraph(dir.path), changedFiles(dir.path));
  is(distances.has(join(dir.path, 'test/deep.test.ts')), true);
  is(distances.has(join(dir.path, 'test/type.test.ts')), false);
});

changed.run();

function repository() {
  const dir = tempDirectory();
  writeTree(dir.path, TREE);
  execFileSync('git', ['init', '-q'], { cwd: dir.path });
  commit(dir.path, 'first');
  return dir;
}

function commit(cwd: string, subject: string): void {
  const author = ['-c', 'user.name=test', '-c', 'user.email=test@localhost'];
  execFileSync('git', ['add', '-A'], { cwd });
  execFileSync('git', [...author, 'commit', '-qm', subject], { cwd });
}
