/** A data directory that only its operator can mend ends `tabern core` with 78 and one line. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { EXIT } from '../../../../gateway/process/exit-codes.ts';
import { startCore, tabern } from '../../../support/service/command.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('gateway/cli/roles/data-refused');
const KEY = 'master.key';

test('a master key that is missing, wrong, cut or empty, and a token that is cut', async () => {
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

test.run();
