/**
 * The runner must fail what uvu lets pass. Each hole is a file here; each file but the first must
 * be red.
 */
import { spawnSync } from 'node:child_process';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../proto/common/must.ts';
import { until } from './support/poll.ts';
import { openOutput } from './support/run/output.ts';
import { ALL, SKIPS } from './support/run/skips.ts';
import { isRunning } from './support/service/processes.ts';
import { tempDirectory, writeTree } from './support/temp.ts';

const RUNNER = fileURLToPath(new URL('./run.ts', import.meta.url));
const GREEN = `
import { suite } from 'uvu';
const it = suite('fine');
it('holds', () => {});
it('holds later', async () => { await null; });
it.run();`;

/**
 * The text before `it.run()` in the green file, or a whole file; then the words of the runner's
 * output.
 */
const HOLES: Record<string, { file: string; says: RegExp; last: string; limitMs?: number }> = {
  'a test that throws': {
    file: inside(`it('breaks', () => { throw new Error('broken on purpose'); });`),
    says: /broken on purpose/,
    last: '2 passed, 1 failed',
  },
  'a test that throws null': {
    file: inside(`it('breaks', () => { throw null; });`),
    says: /threw null/,
    last: '2 passed, 1 failed',
  },
  'a test that rejects with undefined': {
    file: inside(`it('breaks', () => Promise.reject());`),
    says: /threw undefined/,
    last: '2 passed, 1 failed',
  },
  'a test whose end throws too': {
    file: inside(`it('breaks', () => {
      using ends = new DisposableStack();
      ends.defer(() => { throw new Error('the end'); });
      ends.defer(() => { throw new Error('the middle'); });
      throw new Error('the first');
    });`),
    says: /the end.*the middle.*the first/s,
    last: '2 passed, 1 failed',
  },
  'a before hook that throws': {
    file: inside(`it.before(() => { throw new Error('x'); });`),
    says: /no hooks: before/,
    last: '0 passed, 2 failed',
  },
  'an each hook that throws': {
    file: inside(`it.after.each(() => { throw new Error('x'); });`),
    says: /no hooks: after/,
    last: '0 passed, 2 failed',
  },
  'a file without .run()': {
    file: GREEN.replace('it.run();', ''),
    says: /suite "fine" was never queued/,
    last: '0 passed, 2 failed',
  },
  'a second suite without .run()': {
    file: `${GREEN}\nconst two = suite('two'); two('is idle', () => {});`,
    says: /suite "two" was never queued/,
    last: '2 passed, 1 failed',
  },
  'a test added after .run()': {
    file: `${GREEN}\nit('is late', () => {});`,
    says: /"is late" not run/,
    last: '2 passed, 1 failed',
  },
  'a file without tests': { file: '', says: /no suite was queued/, last: '0 passed, 1 failed' },
  'a suite without tests': {
    file: `${GREEN}\nsuite('empty').run();`,
    says: /suite "empty" has no tests/,
    last: '2 passed, 1 failed',
  },
  'a test left as .only': {
    file: inside(`it.only('is alone', () => {});`),
    says: /"holds" not run/,
    last: '1 passed, 2 failed',
  },
  'a test left as .skip': {
    file: inside(`it.skip('is left', () => {});`),
    says: /"is left" is skipped/,
    last: '2 passed, 1 failed',
  },
  'a test that exits 0': {
    file: inside(`it('leaves', () => process.exit(0));`),
    says: /"leaves" started, and never ended/,
    last: '2 passed, 1 failed',
  },
  'a file that exits 0 at once': {
    file: `process.exit(0);`,
    says: /no suite was queued/,
    last: '0 passed, 1 failed',
  },
  'a process that is killed': {
    file: inside(`it('dies', () => process.kill(process.pid, 'SIGKILL'));`),
    says: /exit SIGKILL[\s\S]*without a report/,
    last: '0 passed, 1 failed',
  },
  'a test that never settles': {
    file: inside(`it('waits', () => new Promise(() => {}));`),
    says: /"waits" started, and never ended/,
    last: '2 passed, 1 failed',
  },
  'a rejection that is not awaited': {
    file: inside(`it('floats', () => { Promise.reject(new Error('afloat')); });`),
    says: /afloat/,
    last: '3 passed, 1 failed',
  },
  'an import that fails': {
    file: `import './nowhere.ts';\n${GREEN}`,
    says: /nowhere\.ts/,
    last: '0 passed, 1 failed',
  },
  'a handle left open': {
    file: `${GREEN}\nsetInterval(() => {}, 1000);`,
    says: /open at the time limit:\n.*Timeout[\s\S]*still running after 2 s: killed/,
    last: '2 passed, 1 failed',
    limitMs: 2_000,
  },
  'a child left running': {
    file: `import { spawn } from 'node:child_process';\n${GREEN}\nspawn('sleep', ['60']);`,
    says: /open at the time limit:\n.*\nchild \d+: sleep 60/,
    last: '2 passed, 1 failed',
    limitMs: 2_000,
  },
  'a test that waits for ever': {
    file: inside(`it('hangs', () => new Promise(() => setInterval(() => {}, 1000)));`),
    says: /"hangs" started, and never ended[\s\S]*still running after 2 s: killed/,
    last: '2 passed, 1 failed',
    limitMs: 2_000,
  },
  'a test that blocks its thread': {
    file: inside(`it('spins', () => { for (;;); });`),
    says: /still running after 2 s: killed[\s\S]*without a report/,
    last: '0 passed, 1 failed',
    limitMs: 2_000,
  },
};

const run = suite('run');

run('a green file prints one line, and the count is the last line', async () => {
  await using dir = tempDirectory();
  writeTree(dir.path, { 'green.test.ts': GREEN, 'other.ts': 'throw 1;' });
  const { status, lines } = tests(dir.path);
  assert.is(status, 0);
  assert.is(lines.length, 3);
  assert.match(lines[0] ?? '', /^ok .*green\.test\.ts {2}2 tests/);
  assert.is(lines.at(-1), '2 passed, 0 failed');
});

for (const [name, { file, says, last, limitMs = 60_000 }] of Object.entries(HOLES)) {
  run(`${name} is red`, async () => {
    await using dir = tempDirectory();
    writeTree(dir.path, { 'hole.test.ts': file });
    const { status, output, lines } = tests('--limit-ms', String(limitMs), dir.path);
    assert.is(status, 1, output);
    assert.match(output, says);
    assert.is(lines.at(-1), last, output);
  });
}

run('one red file among green files fails the run, and is named at the end', async () => {
  await using dir = tempDirectory();
  writeTree(dir.path, {
    'a.test.ts': GREEN,
    'b/hole.test.ts': inside('it("x", () => { throw new Error("not in\\ntime") });'),
  });
  const { status, lines } = tests('-j', '2', dir.path);
  assert.is(status, 1);
  assert.is(lines.at(-1), '4 passed, 1 failed');
  const summary = lines.slice(lines.indexOf('red:')).join('\n');
  assert.match(summary, /FAIL .*hole\.test\.ts.*\n.*"x": not in time\n/);
});

run('the output of a red file names the command that runs it alone, with its seed', async () => {
  await using dir = tempDirectory();
  const file = inside(`console.log('TABERN_TEST_SEED=42'); it('x', () => { throw 1; });`);
  writeTree(dir.path, { 'red.test.ts': file });
  const path = join(dir.path, 'red.test.ts');
  const own = relative(process.cwd(), path);
  for (const [options, rest] of [
    [[], ''],
    [['--all'], '--all '],
    [['--split'], '--split '],
  ] as const) {
    const { lines } = tests(...options, path);
    const command = `alone: TABERN_TEST_SEED=42 node test/run.ts ${rest}${own}`;
    assert.ok(lines.includes(`      ${command}`), lines.join('\n'));
  }
});

run('--all reaches the tests, and only --all sets it', async () => {
  await using dir = tempDirectory();
  const file = `console.log('all: ' + process.env.TABERN_TEST_ALL); throw 1;`;
  writeTree(dir.path, { 'all.test.ts': file });
  assert.match(tests('--all', dir.path).output, /all: 1/);
  assert.match(tests(dir.path).output, /all: undefined/);
});

run('--split reaches the tests, as its variable does, and is printed', async () => {
  await using dir = tempDirectory();
  const file = `console.log('way: ' + process.env.TABERN_TEST_TOPOLOGY);`;
  writeTree(dir.path, { 'way.test.ts': `${file} throw 1;` });
  assert.match(tests(dir.path).output, /way: undefined/);
  const ways = [tests('--split', dir.path), testsIn({ TABERN_TEST_TOPOLOGY: 'split' }, dir.path)];
  for (const { output } of ways) {
    assert.match(output, /way: split/);
    assert.match(output, /^FAIL .*way\.test\.ts \(split\) /m);
  }
});

run('--then-all runs larger files once more, while there is time', async () => {
  await using dir = tempDirectory();
  const sizes = new URL('./support/whole.ts', import.meta.url).href;
  const sized = `import { sized } from '${sizes}'; console.log('size: ' + sized('few', 'whole'));`;
  writeTree(dir.path, { 'plain.test.ts': GREEN, 'sized.test.ts': `${sized}${GREEN}` });
  const again = tests('--then-all', '1', dir.path);
  assert.is(again.lines.filter((line) => line.includes('sized.test.ts')).length, 2);
  assert.is(again.lines.filter((line) => line.includes('plain.test.ts')).length, 1);
  assert.match(again.output, /1 of 1 files once more/);
  assert.is(again.lines.at(-1), '4 passed, 0 failed');
  assert.match(tests('--then-all', '0', dir.path).output, /0 of 1 files once more/);
  writeTree(dir.path, { 'sized.test.ts': `${sized} if (sized(0, 1)) throw 1;${GREEN}` });
  const red = tests('--then-all', '1', dir.path);
  assert.match(red.output, /size: whole/);
  assert.match(red.output, /alone: node test\/run.ts --all .*sized.test.ts/);
  assert.is(red.status, 1);
});

run(
  'a long run ends with its slowest files, and the times of each folder and of the machine',
  async () => {
    await using dir = tempDirectory();
    const names = Array.from({ length: 20 }, (_, n) => `${n % 2 ? 'odd' : 'even'}/f${n}.test.ts`);
    const slow = inside(`it('is slow', () => new Promise((end) => setTimeout(end, 1_500)));`);
    writeTree(dir.path, Object.fromEntries(names.map((name) => [name, GREEN])));
    writeTree(dir.path, { 'odd/f1.test.ts': slow });
    const { status, lines } = tests(dir.path);
    assert.is(status, 0);
    const slowest = lines.slice(lines.indexOf('slowest files:') + 1);
    const times = String.raw`\d+\.\d s \(\d+\.\d s of CPU\)`;
    assert.match(slowest[0] ?? '', new RegExp(`odd/f1.test.ts  ${times}, [\\d.]+ s in "is slow"$`));
    for (const sum of ['odd  10', 'even  10', 'in all  20']) {
      assert.match(slowest.join('\n'), new RegExp(`${sum} files  ${times}`));
    }
    assert.match(
      slowest.join('\n'),
      /^ {2}the machine: processors \d+ % in use, \d+\.\d s at full use$/m,
    );
    assert.is(lines.at(-1), '41 passed, 0 failed');
  },
);

const WAYS = { TABERN_TEST_TOPOLOGY: 'split', TABERN_TEST_DATABASE: 'postgres' };

for (const { setting, reasons } of SKIPS) {
  run(`with ${setting}, named tests are skipped and printed with the reason`, async () => {
    const [name, own] = must(
      Object.entries(reasons).find(([, all]) => !(ALL in all)),
      'a suite',
    );
    const titles = Object.keys(own);
    const text = (wanted: readonly string[]) => `
      import { suite } from 'uvu';
      const it = suite(${JSON.stringify(name)});
      ${wanted.map((title) => `it(${JSON.stringify(title)}, () => { throw 1; });`).join('\n')}
      it.run();`;
    await using dir = tempDirectory();
    writeTree(dir.path, { 'named.test.ts': text(titles), 'green.test.ts': GREEN });
    const way = Object.fromEntries(Object.entries(WAYS).filter(([key]) => key === setting));
    const skipped = testsIn(way, dir.path);
    assert.is(skipped.status, 0, skipped.output);
    for (const [title, reason] of Object.entries(own)) {
      assert.ok(skipped.lines.includes(`      skipped: "${title}": ${reason}`), skipped.output);
    }
    assert.is(skipped.lines.at(-1), `2 passed, 0 failed, ${titles.length} skipped`);
    assert.is(tests(dir.path).lines.at(-1), `2 passed, ${titles.length} failed`);
    writeTree(dir.path, { 'named.test.ts': text(['another']) });
    assert.match(testsIn({}, dir.path).output, /has no test ".*", which skips.ts names/);
  });
}

run('progress is printed only on a terminal', () => {
  const shown = (isTTY: boolean) => {
    let text = '';
    const output = openOutput(3, { isTTY, columns: 60, write: (part) => (text += part) });
    output.started('a.test.ts');
    output.ended({
      file: 'a.test.ts',
      isWhole: false,
      isSplit: false,
      isSized: false,
      passed: 1,
      failed: 0,
      problems: [],
      output: '',
      tookMs: 5,
      cpuMs: 0,
      tests: [],
      skipped: [],
    });
    return text;
  };
  assert.match(shown(true), /0 of 3 files {2}0:00 {2}a\.test\.ts/);
  assert.match(shown(true), /1 of 3 files/);
  assert.is(shown(false), 'ok    a.test.ts  1 test  0.0 s (0.0 s of CPU)\n');
});

run('a path that does not exist is red, also beside one that does', async () => {
  await using dir = tempDirectory();
  writeTree(dir.path, { 'green.test.ts': GREEN });
  const { status, lines } = tests(dir.path, join(dir.path, 'nowhere.test.ts'));
  assert.is(status, 1);
  assert.match(lines[0] ?? '', /no test file found at .*nowhere\.test\.ts/);
  assert.is(lines.at(-1), '0 passed, 0 failed');
});

run('a folder without tests is red', async () => {
  await using dir = tempDirectory();
  writeTree(dir.path, { 'node_modules/there/is.test.ts': GREEN });
  const { status, lines } = tests(dir.path);
  assert.is(status, 1);
  assert.is(lines.at(-1), '0 passed, 0 failed');
});

run('processes that a file leaves running end with it', async () => {
  await using dir = tempDirectory();
  const left = `import { spawn } from 'node:child_process';
    const child = spawn('sleep', ['300'], { stdio: 'inherit' });
    console.log('left ' + child.pid); child.unref();
    it('breaks, to show its output', () => { throw new Error('x'); });`;
  writeTree(dir.path, { 'left.test.ts': inside(left) });
  const { output } = tests(dir.path);
  const pid = Number(/left (\d+)/.exec(output)?.[1]);
  assert.ok(pid > 0, output);
  await until(() => !isRunning(pid));
});

run.run();

function inside(text: string): string {
  return GREEN.replace('it.run();', `${text}\nit.run();`);
}

function tests(...options: string[]) {
  return testsIn({}, ...options);
}

function testsIn(more: Record<string, string>, ...options: string[]) {
  // The runner's own settings may be set for this process: it can be a file of an --all run.
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('TABERN_TEST_'));
  const env = { ...Object.fromEntries(own), ...more };
  const child = spawnSync(process.execPath, [RUNNER, ...options], { env, encoding: 'utf8' });
  const output = child.stdout + child.stderr;
  return { status: child.status, output, lines: child.stdout.trimEnd().split('\n') };
}
