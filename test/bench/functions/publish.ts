/**
 * `node test/bench/functions/publish.ts [runs]`: the time of `tabern publish`, first and again
 * with the same lock file, and of the same work by hand in the same run: `npm ci` and a bundle.
 * Read the ratios.
 */
import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { shell, userProject } from '../../support/clients/journey.ts';
import { bundle } from '../../support/runner/bundle.ts';
import { boot } from '../../support/service/stack.ts';
import { show, timed } from '../support/figures.ts';

const BIN = fileURLToPath(new URL('../../../gateway/bin.ts', import.meta.url));
const RUNS = Number(process.argv[2] ?? 5);

await using stack = await boot({ isDirect: true });
await using project = userProject('title-bb');
const where = {
  cwd: project.path,
  env: { TABERN_BASE_URL: stack.url, TABERN_API_KEY: stack.apiKey },
};

const first = await timed(1, publish);
const again = await timed(RUNS, publish);
const plain = await timed(RUNS, byHand);
show('tabern publish, the first time', first, plain);
show('tabern publish again, the same lock file', again, plain);
show('by hand: npm ci (its cache is warm), then a bundle', plain);

async function publish(): Promise<void> {
  const { code, stderr } = await shell([process.execPath, BIN, 'publish', 'index.ts'], where);
  if (code !== 0) throw new Error(stderr);
}

async function byHand(): Promise<void> {
  rmSync(join(project.path, 'node_modules'), { recursive: true, force: true });
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund'];
  await promisify(execFile)('npm', ['ci', ...flags], { cwd: project.path });
  const outFile = join(project.path, 'bundle.mjs');
  await bundle({ root: project.path, entrypoint: 'index.ts', outFile });
}
