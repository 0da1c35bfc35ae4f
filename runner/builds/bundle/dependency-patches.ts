/** What is done to a source before it goes into a bundle. Pure. */
import { basename, join } from 'node:path';

/** playwright finds these two files by a path it computes, which no bundler can follow. */
const PLAYWRIGHT_JSON =
  /require\((?:[\w.]+\.)?join\((?:packageRoot|__dirname)[., "]*"(package|browsers)\.json"\)\)/g;
const PLAYWRIGHT_ROOT = /^.*[/\\]node_modules[/\\](?:playwright|playwright-core)(?=[/\\]lib[/\\])/;

/**
 * The source of the JavaScript file at `path`, so that it works out of a bundle and keeps out of
 * its source map.
 */
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
 * Frames of a dependency name its file and no line: with its sources, playwright-core alone maps to
 * 14 MB.
 */
function nameOnly(file: string): string {
  const map = JSON.stringify({
    version: 3,
    sources: [file],
    sourcesContent: [''],
    mappings: 'AAAA',
  });
  const data = Buffer.from(map).toString('base64');
  return `\n//# sourceMappingURL=data:application/json;base64,${data}`;
}

/**
 * A source of the project, whose own source map is not read: it may name any file as a source, and
 * the bundler would put that into the bundle. The last of several maps counts; this one is empty.
 */
export function withoutMap(source: string): string {
  return `${source}\n//# sourceMappingURL=data:application/json,{}`;
}
