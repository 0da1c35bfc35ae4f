/** Patches sources before they are bundled. Pure. */
import { basename, join } from 'node:path';

/** playwright computes the paths of these two files, which a bundler cannot follow. */
const PLAYWRIGHT_JSON =
  /require\((?:[\w.]+\.)?join\((?:packageRoot|__dirname)[., "]*"(package|browsers)\.json"\)\)/g;
const PLAYWRIGHT_ROOT = /^.*[/\\]node_modules[/\\](?:playwright|playwright-core)(?=[/\\]lib[/\\])/;

/** Patches a dependency's source so that it works in a bundle and is not in its source map. */
export function prepared(path: string, source: string): string {
  const playwright = PLAYWRIGHT_ROOT.exec(path)?.[0];
  const whole = playwright
    ? source.replace(PLAYWRIGHT_JSON, (_, name: string) => {
        return `require(${JSON.stringify(join(playwright, `${name}.json`))})`;
      })
    : source;
  return whole + nameOnly(basename(path));
}

/**
 * Stack frames of a dependency name its file without a line: with sources, the map of
 * playwright-core alone has 14 MB.
 */
function nameOnly(file: string): string {
  const map = { version: 3, sources: [file], sourcesContent: [''], mappings: 'AAAA' };
  const data = Buffer.from(JSON.stringify(map)).toString('base64');
  return `\n//# sourceMappingURL=data:application/json;base64,${data}`;
}

/**
 * Appends an empty source map to a source of the project; the last map counts. The project's own
 * map may name any file as a source, which the bundler would copy into the bundle.
 */
export function withoutMap(source: string): string {
  return `${source}\n//# sourceMappingURL=data:application/json,{}`;
}
