/**
 * Classifies import specifiers before the bundler resolves them: Deno's prefixes and import map,
 * Node's built-in modules, and specifiers that are never allowed.
 */
import { builtinModules } from 'node:module';
import type { PluginBuild } from 'esbuild';
import { type Imports, mapped, packageOf } from '../install/deno-config.ts';

/** Mark a lookup after the import map, and a lookup that only adds flags. */
const SEEN = 'seen';
const OWN = 'own';
const USES_DENO = /(?<![\w$.])(?:globalThis\.)?Deno\s{0,9}\??\.\s{0,9}(\w{1,60})/;

/** `imports` is deno.json's map, whose paths are those of `root`. */
export function specifiers(build: PluginBuild, root: string, imports: Imports): void {
  if (Object.keys(imports).length > 0) importMap(build, root, imports);
  build.onResolve({ filter: /^https?:/ }, ({ path }) => ({
    errors: [{ text: `https: imports are refused; install a package instead of ${path}` }],
  }));
  build.onResolve({ filter: /^(?:npm|jsr):/ }, async ({ path, kind, resolveDir }) => {
    const named = packageOf(path);
    if (named === undefined) return { errors: [{ text: `${path} names no package` }] };
    // the install has chosen the version
    const name = named.name + named.path;
    const found = await build.resolve(name, { kind, resolveDir, pluginData: SEEN });
    return found.errors.length === 0 ? found : { errors: [{ text: notInstalled(path) }] };
  });
  build.onResolve({ filter: /^[a-z_]+(?:\/[a-z_/]+)?$/ }, ({ path }) =>
    builtinModules.includes(path) ? { path: `node:${path}`, external: true } : undefined,
  );
  build.onResolve({ filter: /\.node$/ }, ({ path }) => ({
    errors: [{ text: `native addons cannot run here: ${path}; use a package without one` }],
  }));
}

/** Applies to the project's own files only, as in Deno. */
function importMap(build: PluginBuild, root: string, imports: Imports): void {
  build.onResolve({ filter: /.*/ }, ({ path, kind, importer, resolveDir, pluginData }) => {
    if (pluginData === SEEN || pluginData === OWN || kind === 'entry-point') return undefined;
    if (/[/\\]node_modules[/\\]/.test(importer)) return undefined;
    const target = mapped(path, imports);
    if (target === undefined || target === path) return undefined;
    const isPath = /^\.{0,2}\//.test(target);
    // a path is relative to deno.json; any other target is resolved from the importing file
    const from = isPath ? { resolveDir: root } : { resolveDir };
    const within = isPath ? `./${target.replace(/^\//, '')}` : target;
    return build.resolve(within, { kind, importer, ...from, pluginData: SEEN });
  });
}

/** Keeps the project's own files: under `"sideEffects": false` a file of functions looks unused. */
export function sideEffects(build: PluginBuild): void {
  build.onResolve(
    { filter: /^\.\.?\// },
    async ({ path, kind, resolveDir, importer, pluginData }) => {
      if (pluginData === OWN || importer.includes('node_modules')) return undefined;
      const found = await build.resolve(path, { kind, resolveDir, importer, pluginData: OWN });
      if (found.errors.length > 0 || found.namespace !== 'file') return found;
      return { ...found, sideEffects: true };
    },
  );
}

/** Warns of the first use of `Deno.*` in a source. `file` is its path in the project. */
export function ofDenoAlone(text: string, file: string) {
  const lines = text.split('\n');
  const at = lines.findIndex((line) => USES_DENO.test(line.replace(/^\s*(?:\/\/|\*|\/\*).*/, '')));
  const line = lines[at];
  const name = line === undefined ? undefined : USES_DENO.exec(line)?.[1];
  if (line === undefined || name === undefined) return undefined;
  const problem = `Deno.${name} is there only where the service runs functions under Deno`;
  const location = { file, line: at + 1, lineText: line };
  return [{ text: `${problem}; a node: module is there everywhere`, location }];
}

function notInstalled(specifier: string): string {
  return (
    `${specifier} is not installed: add it to package.json, ` +
    "or name it in deno.json's imports and have no package.json"
  );
}
