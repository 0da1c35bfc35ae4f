/** Sources that are refused, and the error messages for their author. */
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { BundleError } from '../../../../runner/builds/bundle/bundle.ts';
import { bundle } from '../../../support/runner/bundle.ts';
import { directory } from '../../../support/runner/project.ts';

const bundles = suite('runner/builds/bundle/bundle-error');

async function refusalOf(files: Record<string, string>): Promise<string> {
  await using project = directory(files);
  return await refusal(project.path);
}

async function refusal(root: string): Promise<string> {
  try {
    const outFile = join(root, 'out.mjs');
    await bundle({ root, entrypoint: 'index.ts', outFile });
  } catch (error) {
    assert.instance(error, BundleError);
    const { message } = error as BundleError;
    assert.not.match(message, root);
    return message;
  }
  throw new Error('it was bundled');
}

bundles('a syntax error names its file and line', async () => {
  const text = await refusalOf({
    'index.ts': `import './src/bad.ts';`,
    'src/bad.ts': 'let a = 1;\nlet = ;',
  });
  assert.match(text, /^src\/bad\.ts:2: /);
});

bundles('the error of a missing package names the importing file', async () => {
  const text = await refusalOf({ 'index.ts': `import 'not-there-at-all';` });
  assert.match(text, 'index.ts:1: Could not resolve "not-there-at-all"');
});

for (const [what, source, problem] of [
  [
    'https: imports',
    `import 'https://example.com/x.js';`,
    /index\.ts:1: https: imports are refused/,
  ],
  [
    'jsr: imports that are not installed',
    `import 'jsr:@std/path';`,
    /jsr:@std\/path is not installed/,
  ],
  ['native addons', `require('./addon.node');`, /native addons cannot run here: \.\/addon\.node/],
  [
    'an absolute path',
    `import x from '/etc/passwd'; console.log(x)`,
    /index\.ts:1: the import leads/,
  ],
  ['a file URL', `import x from 'file:///etc/passwd'; console.log(x)`, /index\.ts:1: /],
  ['a path that climbs', `import '../../../../../../etc/passwd';`, /index\.ts:1: the import leads/],
  ['an absolute require', `require('/etc/hostname');`, /index\.ts:1: the import leads/],
] as const) {
  bundles(`${what}: refused`, async () => {
    const text = await refusalOf({ 'index.ts': source, 'addon.node': 'x' });
    assert.match(text, problem);
    assert.not.match(text, /root:/);
  });
}

bundles('a link that leads out of the project is refused', async () => {
  await using secret = directory({ 'secret.ts': `export const secret = 'host';` });
  await using project = directory({
    'index.ts': `import { secret } from './inner.ts'; console.log(secret)`,
  });
  await symlink(join(secret.path, 'secret.ts'), join(project.path, 'inner.ts'));
  assert.match(await refusal(project.path), /index\.ts:1: the import leads outside the project/);
});

bundles('a package in a directory above the project is not found', async () => {
  await using outer = directory({
    'node_modules/above/index.js': 'exports.x = 1',
    'project/index.ts': `import 'above';`,
  });
  const text = await refusal(join(outer.path, 'project'));
  assert.match(text, 'index.ts:1: the package "above" is not installed in the project');
});

bundles('a tsconfig.json that extends a file of the host shows nothing of that file', async () => {
  await using host = directory({ 'secrets.json': 'root:x:0:0' });
  await using project = directory({
    'index.ts': 'let = ;',
    'tsconfig.json': JSON.stringify({ extends: join(host.path, 'secrets.json') }),
  });
  const text = await refusal(project.path);
  assert.not.match(text, 'root');
  assert.not.match(text, host.path);
});

bundles('a tsconfig.json above the project is ignored', async () => {
  await using outer = directory({
    'tsconfig.json': '{"compilerOptions": {"paths": {"there": ["./project/there.ts"]}}}',
    'project/there.ts': 'export {}',
    'project/index.ts': `import 'there';`,
  });
  assert.match(await refusal(join(outer.path, 'project')), 'Could not resolve "there"');
});

bundles.run();
