/**
 * `doctor` draws a line of text on a machine without Chrome and without a font: in each sandbox,
 * from the sources and from the executable with a Chrome. Empty directories cover the fonts and the
 * Chrome of this machine.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { is, match } from 'uvu/assert';
import { shell } from '../../support/clients/journey.ts';
import { builtBinary } from '../../support/service/binary.ts';
import { tempDirectory } from '../../support/temp.ts';

const LAUNCHER = join(import.meta.dirname, '../../../gateway/tabern.js');
/** The directories of fonts, of their settings and of Chromes. */
const COVERED = [
  ...['/usr/share/fonts', '/usr/local/share/fonts', '/etc/fonts', '/var/cache/fontconfig'],
  ...['/usr/lib/chromium', '/usr/lib64/chromium-browser', '/opt/google'],
];
const DRAWS = /^warn +chrome +HeadlessChrome\/[\d.]+ of the npm package/m;

const fonts = suite('journey/install/fonts');

/** The output of `doctor` on that machine. */
async function doctor(command: string[], env: Record<string, string>): Promise<string> {
  await using dir = tempDirectory();
  const covers = COVERED.filter(existsSync).flatMap((path) => ['--tmpfs', path]);
  const bare = ['bwrap', '--dev-bind', '/', '/', ...covers, ...command, 'doctor'];
  const { stdout } = await shell(bare, { cwd: dir.path, env: { ...env, TABERN_DATA: dir.path } });
  return stdout;
}

for (const sandbox of ['bwrap', 'landlock']) {
  fonts(
    `the Chrome of the npm package draws text in ${sandbox} on a machine without fonts`,
    async () => {
      match(await doctor([process.execPath, LAUNCHER], { TABERN_SANDBOX: sandbox }), DRAWS);
    },
  );
}

fonts('the executable with a Chrome draws text on a machine without fonts', async () => {
  await using dir = await builtBinary(['--full']);
  await using cache = tempDirectory();
  const env = { TABERN_CACHE_DIR: cache.path };
  const said = await doctor([join(dir.path, 'tabern')], env);
  match(said, DRAWS);
  is(said.includes('fail '), false, said);
});

fonts.run();
