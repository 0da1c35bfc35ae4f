/**
 * Bundles the built-in function of one-shots, a step of the installation: one ES module for
 * function hosts, which core publishes. Its packages are bundled, so that the program does not
 * depend on them; their licences are at the end of the file.
 */
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';

const ROOT = join(import.meta.dirname, '../..');
const OUT = join(ROOT, 'core/functions/one-shots/gen/bundle.mjs');
const ENTRY = [
  "import './runner/one-shots/main.ts';",
  "export { definitions, manifests } from './runner/sdk/registry.ts';",
].join('\n');
/** CommonJS packages load Node's modules by it. */
const REQUIRE =
  "import { createRequire } from 'node:module';const require=createRequire(import.meta.url);";

/** The description of CDP in chrome-remote-interface, 1.4 MB: commands are sent by name. */
const WITHOUT_PROTOCOL: Plugin = {
  name: 'without-protocol',
  setup({ onLoad }) {
    onLoad({ filter: /chrome-remote-interface\/lib\/protocol\.json$/ }, () => ({
      contents: '{"version":{},"domains":[]}',
      loader: 'json',
    }));
  },
};

await build({
  absWorkingDir: ROOT,
  stdin: { contents: ENTRY, resolveDir: ROOT, sourcefile: 'entry.ts', loader: 'ts' },
  outfile: OUT,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node22',
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'eof',
  banner: { js: REQUIRE },
  // it is given documents; the other build brings a parser of text
  alias: { turndown: 'turndown/lib/turndown.browser.es.js' },
  plugins: [WITHOUT_PROTOCOL],
  logLevel: 'warning',
});
