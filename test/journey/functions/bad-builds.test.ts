/**
 * Builds that fail, by mistake or on purpose: each ends FAILED with a fix in its cause and its log,
 * and has no effect on the next build.
 */
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from 'tar';
import { suite } from 'uvu';
import { is, match, not } from 'uvu/assert';
import { type Build, isOver, publish, TRIVIAL_PROJECT } from '../../support/clients/functions.ts';
import { until } from '../../support/poll.ts';
import { boot, type Stack } from '../../support/service/stack.ts';
import { tempDirectory, writeTree } from '../../support/temp.ts';

const journey = suite('journey/functions/bad-builds');
const DEFINES = `import { defineFn } from 'tabern'; defineFn('one', async () => 1);\n`;
const BOMB = `import { spawn } from 'node:child_process';
const { promise, reject } = Promise.withResolvers();
const again = "for (;;) require('node:child_process').spawn(process.execPath, process.execArgv)";
for (let count = 0; count < 2_000; count += 1) {
  spawn(process.execPath, ['-e', again]).on('error', reject).on('exit', (code) => {
    if (code !== 0) reject(new Error('a process ended with ' + code));
  });
}
await promise;
`;

type Bad = {
  files: Record<string, string>;
  /** Adds what `files` cannot express. */
  add?: (dir: string) => void;
  code: string;
  message: RegExp;
};
const BAD: Record<string, Bad> = {
  'no functions': {
    files: { 'index.ts': 'export const x = 1;' },
    code: 'NO_MANIFESTS_FOUND',
    message: /call defineFn\(name, handler\)/,
  },
  'stale manifests and no functions': {
    files: {
      'index.ts': 'export {};',
      '.browserbase/functions/manifests/old.json': '{"name": "old", "config": {}}',
    },
    code: 'NO_MANIFESTS_FOUND',
    message: /call defineFn/,
  },
  'a syntax error': {
    files: { 'index.ts': `${DEFINES}let = ;` },
    code: 'BUILD_ERROR',
    message: /index\.ts:2: /,
  },
  'a thrown error': {
    files: { 'index.ts': `${DEFINES}throw new RangeError('thrown early');` },
    code: 'BUILD_ERROR',
    message: /cannot be loaded: RangeError: thrown early/,
  },
  'a package that is not installed': {
    files: { 'index.ts': `${DEFINES}import 'left-pad';` },
    code: 'BUILD_ERROR',
    message: /left-pad/,
  },
  'a link out of the project': {
    files: { 'index.ts': DEFINES },
    add: (dir) => symlinkSync('/etc', join(dir, 'secrets')),
    code: 'BUILD_ERROR',
    message: /"secrets" leads outside the project; remove it or copy the file/,
  },
  'a file that is read from outside': {
    files: { 'index.ts': `import '../../../../../etc/hosts';\n${DEFINES}` },
    code: 'BUILD_ERROR',
    message: /outside|could not resolve/i,
  },
  'a huge archive': {
    files: { 'index.ts': DEFINES },
    add: (dir) => writeFileSync(join(dir, 'zeros'), Buffer.alloc(64 << 20)),
    code: 'BUILD_ERROR',
    message: /unpacks to far more than its size/,
  },
  'eleven functions': {
    files: {
      'index.ts': `import { defineFn } from 'tabern';
        for (let n = 0; n < 11; n += 1) defineFn('f' + n, async () => n);`,
    },
    code: 'TOO_MANY_MANIFESTS',
    message: /the limit is 10/,
  },
  'a fork bomb': {
    files: { 'index.ts': `${BOMB}${DEFINES}` },
    code: 'BUILD_ERROR',
    message: /cannot be loaded: /,
  },
};

async function upload(stack: Stack, { files, add }: Bad): Promise<string> {
  await using dir = tempDirectory();
  await using packed = tempDirectory();
  writeTree(dir.path, files);
  add?.(dir.path);
  const file = join(packed.path, 'archive.tgz');
  await create({ cwd: dir.path, gzip: true, file, portable: true }, ['.']);
  const form = new FormData();
  form.set('metadata', '{"entrypoint": "index.ts"}');
  form.set('archive', new Blob([readFileSync(file)], { type: 'application/gzip' }), 'a.tar.gz');
  const init = { method: 'POST', body: form };
  return (await stack.call<{ id: string }>('/v1/functions/builds', init)).id;
}

journey('each bad build ends FAILED with a fix, and the next build completes', async () => {
  await using stack = await boot({ env: { TABERN_BUILDS_MAX: '2' } });
  for (const [what, bad] of Object.entries(BAD)) {
    const path = `/v1/functions/builds/${await upload(stack, bad)}`;
    const build = await until(async () => {
      const one = await stack.call<Build>(path);
      return isOver(one.status) && one;
    });
    const { logs } = await stack.call<{ logs: { message: string }[] }>(`${path}/logs`);
    const log = logs.map(({ message }) => message).join('\n');
    is(build.status, 'FAILED', `${what}\n${log}`);
    is(build.cause?.code, bad.code, `${what}\n${log}`);
    match(String(build.cause?.message), bad.message, what);
    is(log.includes(`${bad.code}: ${build.cause?.message}`), true, `${what}\n${log}`);
    not.match(log + build.cause?.message, stack.dataDir, what);
    is(build.builtFunctions?.length ?? 0, 0, what);
  }
  is((await stack.call<{ total: number }>('/v1/functions')).total, 0, 'nothing was published');
  is(Object.keys(await publish(stack, TRIVIAL_PROJECT)).join(), 'trivial');
});

journey.run();
