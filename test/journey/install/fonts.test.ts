/**
 * A machine without Chrome and without a font: its `doctor`, which draws a line of text, in each
 * sandbox, from the sources and from the executable that carries a Chrome. The fonts and the Chrome
 * of this machine are covered by empty directories.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { is, match } from 'uvu/assert';
import { shell } from '../../support/clients/journey.ts';
import { builtBinary } from '../../support/service/binary.ts';
import { tempDirectory } from '../../support/temp.ts';

const LAUNCHER = join(import.meta.dirname, '../../../gateway/tabern.js');
/** Where fonts, their settings and Chromes are. */
const COVERED = [
  ...['/usr/share/fonts', '/usr/local/share/fonts', '/etc/fonts', '/var/cache/fontconfig'],
  ...['/usr/lib/chromium', '/usr/lib64/chromium-browser', '/opt/google'],
];
const DRAWS = /^warn +chrome +HeadlessChrome\/[\d.]+ of the npm package/m;

const fonts = suite('journey/install/fonts');

/** What `doctor` says there. */
async function doctor(command: string[], env: Record<string, string>): Promise<string> {
  await using dir = tempDirectory();
  const covers = COVERED.filter(existsSync).flatMap((path) => ['--tmpfs', path]);
  const bare = ['bwrap', '--dev-bind', '/', '/', ...covers, ...command, 'doctor'];
  const { stdout } = await shell(bare, { cwd: dir.path, env: { ...env, TABERN_DATA: dir.path } });
  return stdout;
}

for (const sandbox of ['bwrap', 'landlock']) {
  fonts(`the Chrome of the npm package draws text in ${sandbox}, without a font`, async () => {
    match(await doctor([process.execPath, LAUNCHER], { TABERN_SANDBOX: sandbox }), DRAWS);
  });
}

fonts('the executable that carries a Chrome draws text, without a font', async () => {
  await using dir = await builtBinary(['--full']);
  await using cache = tempDirectory();
  const env = { TABERN_CACHE_DIR: cache.path };
  const said = await doctor([join(dir.path, 'tabern')], env);
  match(said, DRAWS);
  is(said.includes('fail '), false, said);
});

fonts.run();
