/** Reports of changes, as by an editor or a checkout. */
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { watchSources } from '../../../../runner/cli/dev/watch.ts';
import { until } from '../../../support/poll.ts';
import { directory } from '../../../support/runner/project.ts';

const watching = suite('runner/cli/dev/watch');

watching('a change is reported, also in a new folder and of a renamed file', async () => {
  await using project = directory({ 'index.ts': '1', 'lib/a.ts': '1' });
  let reported = 0;
  await using _watch = await watchSources(project.path, {
    onChange: () => {
      reported += 1;
    },
    onLost: assert.unreachable,
  });
  const path = (name: string) => join(project.path, name);
  const reports = async (change: () => void) => {
    const before = reported;
    change();
    await until(() => reported > before);
  };
  await reports(() => writeFileSync(path('index.ts'), '2'));
  await reports(() => writeFileSync(path('lib/a.ts'), '2'));
  await reports(() => mkdirSync(path('new')));
  await reports(() => writeFileSync(path('new/b.ts'), '1'));
  await reports(() => {
    writeFileSync(path('lib/.a.swp'), '3');
    renameSync(path('lib/.a.swp'), path('lib/a.ts'));
  });
  await reports(() => rmSync(path('new'), { recursive: true }));
});

watching('output of the command itself is not reported', async () => {
  await using project = directory({ 'index.ts': '1', 'cache/own/a': '1' });
  const own = join(project.path, 'cache/own');
  let reported = 0;
  await using _watch = await watchSources(project.path, {
    except: own,
    onChange: () => {
      reported += 1;
      // as a build does: if it were reported, builds would never end
      writeFileSync(join(own, `dev-${reported}.mjs`), '1');
      if (reported === 1) writeFileSync(join(project.path, 'last.ts'), '1');
    },
    onLost: assert.unreachable,
  });
  writeFileSync(join(project.path, 'index.ts'), '2');
  await until(() => reported === 2);
});

watching('changes in a folder that replaced another one are reported', async () => {
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

watching('changes of dependencies, hidden files and build outputs are not reported', async () => {
  const skipped = ['node_modules/a/index.js', '.git/HEAD', 'dist/index.js', '.env'];
  const files = [...skipped, 'lib/deep/a.ts'];
  await using project = directory(Object.fromEntries(files.map((name) => [name, '1'])));
  await using outside = directory({ a: '1' });
  symlinkSync(outside.path, join(project.path, 'link'));
  let reported = 0;
  await using _watch = await watchSources(project.path, {
    onChange: () => {
      reported += 1;
    },
    onLost: assert.unreachable,
  });
  let controls = 0;
  await using _control = await watchSources(join(project.path, 'node_modules/a'), {
    onChange: () => {
      controls += 1;
    },
    onLost: assert.unreachable,
  });
  writeFileSync(join(outside.path, 'a'), '2'); // behind a link
  mkdirSync(join(project.path, 'build/new'), { recursive: true });
  for (const name of skipped.toReversed()) writeFileSync(join(project.path, name), '2');
  await until(() => controls === 1); // a change as early as these, and as long on its way
  assert.is(reported, 0);
  writeFileSync(join(project.path, 'lib/deep/a.ts'), '2');
  await until(() => reported === 1);
});

watching.run();
