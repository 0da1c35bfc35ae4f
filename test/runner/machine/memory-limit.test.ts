/** The least limit of memory counts, wherever in the tree of cgroups it is set. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { memoryLimit } from '../../../runner/machine/memory-limit.ts';
import { tempDirectory } from '../../support/temp.ts';

const limit = suite('runner/machine/memory-limit');
const MIB = 2 ** 20;

/** A process in /slice/unit/service of a tree with these files. */
function made(dir: string, files: Record<string, string>): string {
  const proc = join(dir, 'proc');
  const tree: Record<string, string> = {
    'proc/cgroup': '0::/slice/unit/service\n',
    'proc/mountinfo': `30 24 0:26 / ${dir}/cgroup rw,nosuid - cgroup2 cgroup2 rw\n`,
  };
  for (const group of ['', 'slice/', 'slice/unit/', 'slice/unit/service/']) {
    tree[`cgroup/${group}cgroup.controllers`] = 'memory\n';
  }
  for (const [name, text] of Object.entries({ ...tree, ...files })) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), text);
  }
  return proc;
}

const own = () => Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);

for (const [group, name] of [
  ['slice/unit/service', 'memory.max'],
  ['slice/unit', 'memory.max'],
  ['slice', 'memory.high'],
  ['.', 'memory.max'],
]) {
  limit(`${name} of ${group} counts`, async () => {
    await using dir = tempDirectory();
    const files = { [`cgroup/${group}/${name}`]: `${64 * MIB}\n` };
    assert.is(memoryLimit(made(dir.path, files)), 64 * MIB);
  });
}

limit('the least of several counts, and "max" is no limit', async () => {
  await using dir = tempDirectory();
  const files = {
    'cgroup/slice/unit/service/memory.max': 'max\n',
    'cgroup/slice/unit/memory.high': `${96 * MIB}\n`,
    'cgroup/slice/memory.max': `${128 * MIB}\n`,
  };
  assert.is(memoryLimit(made(dir.path, files)), 96 * MIB);
});

limit('without a limit, or cgroups, the memory of the machine counts', async () => {
  await using dir = tempDirectory();
  assert.is(memoryLimit(made(dir.path, {})), own());
  assert.is(memoryLimit(join(dir.path, 'none')), own());
});

limit.run();
