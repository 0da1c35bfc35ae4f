/** A data directory that cannot be used ends a command with one line that names the fix. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EXIT } from '../../../../gateway/process/exit-codes.ts';
import { startCore, tabern } from '../../../support/service/command.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('gateway/cli/roles/data-refused');
const BIN = fileURLToPath(new URL('../../../../gateway/bin.ts', import.meta.url));
const KEY = 'master.key';

test('a missing, wrong or damaged master key and a damaged token are refused', async () => {
  await using dir = tempDirectory();
  const env = { TABERN_DATA: join(dir.path, 'data') };
  {
    await using _ = await startCore(env);
  }
  const other = Buffer.alloc(32, 1).toString('base64');
  for (const [name, text, says] of [
    [KEY, undefined, /is missing: restore it from the backup/],
    [KEY, other, /is not the key of this database/],
    [KEY, other.slice(0, 20), /is not a key of 32 bytes/],
    [KEY, '', /is not a key of 32 bytes/],
    ['operator.token', 'cut', /is damaged: delete it/],
  ] as const) {
    const path = join(env.TABERN_DATA, 'keys', name);
    const before = readFileSync(path, 'utf8');
    if (text === undefined) rmSync(path);
    else writeFileSync(path, text);
    const { code, err } = await tabern(['core'], env).ended;
    assert.is(code, EXIT.operator, `${name} ${text}: ${err}`);
    assert.match(err.split('\n').find((line) => line.startsWith('tabern: ')) ?? err, says);
    writeFileSync(path, before);
  }
  await using _ = await startCore(env);
});

/** Root may read everything: without these capabilities it is a user like others. */
const AS_USER =
  process.getuid?.() === 0 ? ['setpriv', '--bounding-set', '-dac_override,-dac_read_search'] : [];

function refusedUser(argv: readonly string[], dataDir: string) {
  const [program = '', ...words] = [...AS_USER, process.execPath, BIN, ...argv];
  const { PATH = '' } = process.env;
  const env = { PATH, TABERN_DATA: dataDir };
  const { status, stdout, stderr } = spawnSync(program, words, { env, encoding: 'utf8' });
  return { code: status, out: stdout, err: stderr };
}

test('without permission, the error names the directory, its mode and --data', async () => {
  await using dir = tempDirectory();
  const parent = join(dir.path, 'parent');
  mkdirSync(join(parent, 'data'), { recursive: true });
  const uid = process.getuid?.();
  const data = join(parent, 'data');
  const says = (path: string) =>
    `tabern: user ${uid} cannot use the data directory ${path}: ` +
    'change the mode, or set --data to another directory\n';
  try {
    chmodSync(data, 0o000);
    const backup = ['backup', join(dir.path, 'b.tar')];
    for (const argv of [['core'], ['gateway'], ['runner'], ['keys', 'list'], backup]) {
      const err = says(`${data}, which has the mode 0000`);
      assert.equal(refusedUser(argv, data), { code: EXIT.config, out: '', err }, argv.join(' '));
    }
    chmodSync(data, 0o500);
    const err = says(`${data}, which has the mode 0500`);
    assert.equal(refusedUser(['core'], data), { code: EXIT.config, out: '', err });
    chmodSync(parent, 0o500);
    for (const missing of [join(parent, 'none'), join(parent, 'none/deeper')]) {
      const refused = says(`${missing}: ${parent} has the mode 0500`);
      assert.equal(refusedUser(['core'], missing), { code: EXIT.config, out: '', err: refused });
    }
  } finally {
    chmodSync(parent, 0o700);
    chmodSync(data, 0o700); // or the directory is not removed
  }
});

test.run();
