/** Changes of sources, as an editor and a checkout make them. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { foldersOf, watchSources } from '../../../runner/cli/watch.ts';
import { until } from '../../support/poll.ts';
import { directory } from '../../support/runner/project.ts';

const watching = suite('runner/cli/watch');

watching('tells of a change, of one in a new folder, and of a file put in place', async () => {
  await using project = directory({ 'index.ts': '1', 'lib/a.ts': '1' });
  let told = 0;
  await using _watch = await watchSources(project.path, {
    onChange: () => {
      told += 1;
    },
    onLost: assert.unreachable,
  });
  const path = (name: string) => join(project.path, name);
  const tells = async (change: () => void) => {
    const before = told;
    change();
    await until(() => told > before);
  };
  await tells(() => writeFileSync(path('index.ts'), '2'));
  await tells(() => writeFileSync(path('lib/a.ts'), '2'));
  await tells(() => mkdirSync(path('new')));
  await tells(() => writeFileSync(path('new/b.ts'), '1'));
  await tells(() => {
    writeFileSync(path('lib/.a.swp'), '3');
    renameSync(path('lib/.a.swp'), path('lib/a.ts'));
  });
  await tells(() => rmSync(path('new'), { recursive: true }));
});

watching('does not tell of what the command itself writes', async () => {
  await using project = directory({ 'index.ts': '1', 'cache/own/a': '1' });
  const own = join(project.path, 'cache/own');
  let told = 0;
  await using _watch = await watchSources(project.path, {
    except: own,
    onChange: () => {
      told += 1;
      // as a build does: seen, it would lead to the next one without end
      writeFileSync(join(own, `dev-${told}.mjs`), '1');
      if (told === 1) writeFileSync(join(project.path, 'last.ts'), '1');
    },
    onLost: assert.unreachable,
  });
  assert.not((await foldersOf(project.path, undefined, own)).includes(own));
  writeFileSync(join(project.path, 'index.ts'), '2');
  await until(() => told === 2);
});

watching('tells of what is in a folder that took the place of another', async () => {
  await using project = directory({ 'lib/a.ts': '1' });
  const lib = join(project.path, 'lib');
  let seen = '';
  await using _watch = await watchSources(project.path, {
    onChange: () => {
      seen = readFileSync(join(lib, 'a.ts'), 'utf8');
    },
    onLost: assert.unreachable,
  });
  rmSync(lib, { recursive: true });
  mkdirSync(lib);
  writeFileSync(join(lib, 'a.ts'), '2');
  await until(() => seen === '2');
  writeFileSync(join(lib, 'a.ts'), '3');
  await until(() => seen === '3');
});

watching('dependencies, hidden folders and what is built are not looked into', async () => {
  const files = ['node_modules/a/index.js', '.git/HEAD', 'dist/index.js', 'lib/deep/a.ts'];
  await using project = directory(Object.fromEntries(files.map((name) => [name, '1'])));
  const lib = join(project.path, 'lib');
  assert.equal(await foldersOf(project.path), [project.path, lib, join(lib, 'deep')]);
});

watching.run();
