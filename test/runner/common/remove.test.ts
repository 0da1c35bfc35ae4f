/** A tenant's directory is removed with any names and any depth. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { removeTree } from '../../../runner/common/remove.ts';
import { sweepRuns } from '../../../runner/machine/stale-runs.ts';

const remove = suite('runner/common/remove');

function deep(): AsyncDisposable & { root: string; kept: string; full: string } {
  const root = mkdtempSync(join(tmpdir(), 'tabern-remove-'));
  const [kept, full] = [join(root, 'kept'), join(root, '999999999-1')];
  // names end in a byte that is no UTF-8; a program in a jail may walk by relative names, too
  const name = `${'x'.repeat(249)}$(printf '\\377')`;
  const script = `
    mkdir "${kept}" "${full}" && : > "${kept}/file" && cd "${full}"
    for level in $(seq 40); do
      ln -s "${kept}" link && : > file && mkdir "${name}" && cd -P "./${name}" || exit 1
    done`;
  execFileSync('/bin/sh', ['-c', script]);
  return { root, kept, full, [Symbol.asyncDispose]: () => removeTree(root) };
}

remove("paths longer than the system's limit are removed, and no link is followed", async () => {
  await using lab = deep();
  await removeTree(lab.full);
  assert.is(existsSync(lab.full), false);
  assert.is(existsSync(join(lab.kept, 'file')), true);
});

remove("a dead runner's directory with such paths does not stop the next start", async () => {
  await using lab = deep();
  assert.equal(await sweepRuns(lab.root), [lab.full]);
  assert.is(existsSync(lab.full), false);
});

remove('removing a missing directory is not an error', async () => {
  await removeTree('/no/such/directory');
});

remove.run();
