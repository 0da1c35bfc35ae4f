/** The table of shared pools in core/README.md: every pool has a row, and every row a test. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const test = suite('core/pools');

const ROOT = join(import.meta.dirname, '../..');
const MADE = /\bopen(?:Shares|Semaphore|FairQueue)\b[<(]/;

function rows(): string[][] {
  const text = readFileSync(join(ROOT, 'core/README.md'), 'utf8');
  const [section = ''] = text.split('## Shared pools')[1]?.split('\n## ') ?? [];
  const lines = section.split('\n').filter((line) => line.startsWith('| '));
  return lines.slice(1).map((line) =>
    line
      .split('|')
      .map((cell) => cell.trim())
      .slice(1, -1),
  );
}

test('each row has a size, a share and existing tests', () => {
  assert.ok(rows().length > 10, 'the table is found');
  for (const cells of rows()) {
    assert.is(cells.length, 4, cells.join(' | '));
    assert.ok(
      cells.every((cell) => cell !== ''),
      cells.join(' | '),
    );
    for (const path of (cells[3] ?? '').split(', ')) assert.ok(existsSync(join(ROOT, path)), path);
  }
});

test('each file that opens a pool has a row', () => {
  const named = rows()
    .map(([pool = '']) => pool)
    .join();
  const files = globSync('{core,gateway,runner}/**/*.ts', { cwd: ROOT });
  const pools = files.filter((path) => MADE.test(readFileSync(join(ROOT, path), 'utf8')));
  assert.ok(pools.length > 8, 'pools are found');
  const missing = pools.filter((path) => !named.includes(path.replace(/^core\//, '')));
  assert.equal(missing, []);
});

test.run();
