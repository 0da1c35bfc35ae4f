/**
 * The package of `npm pack` in another project: the SDK with its types, and the command. Its
 * dependencies are those of this checkout, since a registry may be unreachable.
 */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { extract } from 'tar';
import { suite } from 'uvu';
import { equal, is, match } from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ended, invoke, publish } from '../../support/clients/functions.ts';
import { shell } from '../../support/clients/journey.ts';
import { boot } from '../../support/service/stack.ts';
import { type TempDirectory, tempDirectory, writeTree } from '../../support/temp.ts';

const ROOT = join(import.meta.dirname, '../../..');
const TSC = join(ROOT, 'node_modules/.bin/tsc');
const run = promisify(execFile);
/** A user's program: `params` has the type of the handler. */
const PROJECT = {
  'package.json': '{"name":"theirs","private":true,"type":"module"}',
  'tsconfig.json': `{"compilerOptions":{"strict":true,"module":"nodenext","target":"es2024",
    "skipLibCheck":false,"exactOptionalPropertyTypes":true,"lib":["es2024"],
    "types":[],"noEmit":true},"files":["good.ts"]}`,
  'good.ts': `import { defineFn, type FunctionContext } from 'tabern';
const open = async (ctx: FunctionContext, params: { url: string }) => params.url + ctx.session.id;
defineFn('good', open);
`,
  'bad.ts': `import { defineFn } from 'tabern';
defineFn(7, async () => undefined);
`,
};
const journey = suite('pack');

/** A project with the package installed; returns its directory. */
async function theirs(): Promise<TempDirectory> {
  await using work = tempDirectory();
  for (const name of ['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md']) {
    cpSync(join(ROOT, name), join(work.path, name));
  }
  for (const name of ['tabern.js', 'modules.js', 'bin.ts']) {
    cpSync(join(ROOT, 'gateway', name), join(work.path, 'gateway', name));
  }
  const out = join(work.path, 'dist/js');
  const script = join(ROOT, 'gateway/packaging/package.ts');
  await run(process.execPath, [script, '--out', out]);
  await run('npm', ['pack', '--ignore-scripts', '--offline'], { cwd: work.path });
  const tarball = must(
    readdirSync(work.path).find((name) => name.endsWith('.tgz')),
    'a tarball',
  );
  const dir = tempDirectory();
  writeTree(dir.path, PROJECT);
  const modules = join(dir.path, 'node_modules');
  mkdirSync(join(modules, 'tabern'), { recursive: true });
  await extract({ file: join(work.path, tarball), cwd: join(modules, 'tabern'), strip: 1 });
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (!name.startsWith('.')) symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  }
  return dir;
}

journey('the npm package has defineFn with its types, and the command', async () => {
  await using dir = await theirs();
  const inProject = { cwd: dir.path, env: {} };
  const packed = join(dir.path, 'node_modules/tabern');
  const wanted = ['CHANGELOG.md', 'LICENSE', 'README.md', 'dist', 'gateway', 'package.json'];
  equal(readdirSync(packed).sort(), wanted);
  equal(readdirSync(join(packed, 'gateway')).sort(), ['modules.js', 'tabern.js'], 'no sources');

  const checked = await shell([TSC, '-p', '.'], inProject);
  is(checked.code, 0, checked.stdout);
  const refused = await shell([TSC, '--ignoreConfig', '--module', 'nodenext', 'bad.ts'], inProject);
  match(refused.stdout, /bad\.ts.*TS\d+: .*'number'/s);
  const code = "import('tabern').then((it) => console.log(typeof it.defineFn))";
  const imported = await shell([process.execPath, '-e', code], inProject);
  is(imported.stdout, 'function\n', imported.stderr);

  const program = join(packed, 'gateway/tabern.js');
  const version = await shell([process.execPath, program, 'version'], inProject);
  match(version.stdout, /^\d+\.\d+\.\d+/, version.stderr);
  const made = await shell([process.execPath, program, 'init', 'first'], inProject);
  is(made.code, 0, made.stderr);
  match(made.stderr, `node ${join(packed, 'dist/js/gateway/tabern.js')} publish index.ts`);
  match(readFileSync(join(dir.path, 'first/tabern.d.ts'), 'utf8'), "declare module 'tabern'");
  await using stack = await boot({ command: [process.execPath, program] });
  const { trivial } = await publish(stack);
  const { id } = await invoke(stack, must(trivial, 'trivial'), { a: 1 });
  const { status, results } = await ended(stack, id);
  equal([status, results], ['COMPLETED', { params: { a: 1 }, invocation: id }], stack.logs());
});

journey.run();
