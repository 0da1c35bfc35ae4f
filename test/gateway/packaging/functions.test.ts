/** The declaration of the SDK is never seen in part, and is written only when it differs. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { writeDeclaration } from '../../../gateway/packaging/functions.ts';
import { tempDirectory, writeTree } from '../../support/temp.ts';

const test = suite('gateway/packaging/functions');

test('the file stays when its text is the same, and is replaced by another file', async () => {
  await using dir = tempDirectory();
  const write = async (types: string) => {
    writeTree(dir.path, { 'runner/sdk/types.ts': types, 'runner/sdk/registry.ts': '' });
    await writeDeclaration(dir.path);
    const { ino, mtimeNs } = statSync(path, { bigint: true });
    return [ino, mtimeNs];
  };
  const folder = join(dir.path, 'runner/cli/gen');
  const path = join(folder, 'tabern.d.ts.txt');
  const first = await write('export type A = 1;\n');
  assert.equal(await write('export type A = 1;\n'), first);
  const [ino] = await write('export type A = 2;\n');
  assert.is.not(ino, first[0], 'renamed, not written in place');
  assert.equal(readdirSync(folder), ['tabern.d.ts.txt']);
});

test.run();
