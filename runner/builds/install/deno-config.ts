/**
 * Imports of a project written for Deno: the import map of deno.json, and npm: and jsr: specifiers.
 * A package of jsr is installed from jsr's npm mirror, under the mirror's name for it. Versions are
 * those of the specifiers; deno.lock is not read.
 */
import { buildError } from '../build-failure.ts';
import { isObject, objectOf, readText, SETTINGS_MAX_BYTES } from '../read-file.ts';

const FILES = ['deno.json', 'deno.jsonc'];
const PACKAGE = /^\/?(?<name>(?:@[^/@]+\/)?[^/@]+)(?:@(?<version>[^/]*))?(?<path>\/.*)?$/;

/** Specifier, or a prefix that ends in a slash -> its replacement. */
export type Imports = Readonly<Record<string, string>>;

/** A package of a specifier, with its npm name. */
export type Package = { name: string; version: string; path: string };

/** The project's import map; undefined without a deno.json. Throws a BuildFailure. */
export async function readImports(root: string): Promise<Imports | undefined> {
  for (const file of FILES) {
    const config = await readJsonc(root, file);
    if (config === undefined) continue;
    const { importMap, imports } = config;
    if (imports !== undefined || importMap === undefined) return importsOf(imports, file);
    if (typeof importMap !== 'string' || /^\w+:|^\/|(?:^|\/)\.\.(?:\/|$)/.test(importMap)) {
      throw buildError(`${file}: importMap must name a file of the project`);
    }
    const map = await readJsonc(root, importMap);
    if (map === undefined) throw buildError(`${file}: there is no ${importMap}`);
    return importsOf(map['imports'], importMap);
  }
  return undefined;
}

/** The map's replacement for a specifier; undefined without one. */
export function mapped(specifier: string, imports: Imports): string | undefined {
  const exact = imports[specifier];
  if (exact !== undefined && Object.hasOwn(imports, specifier)) return exact;
  const [key, target] =
    Object.entries(imports)
      .filter(([key, target]) => specifier.startsWith(prefixOf(key, target)))
      .sort(([a], [b]) => b.length - a.length)[0] ?? [];
  if (key === undefined || target === undefined) return undefined;
  return target.replace(/\/?$/, '/') + specifier.slice(key.replace(/\/?$/, '/').length);
}

/** As in Deno, a package's name also maps the paths inside the package. */
function prefixOf(key: string, target: string): string {
  if (key.endsWith('/')) return key;
  return /^(?:npm|jsr):/.test(target) ? `${key}/` : '\0';
}

/** The package of an npm: or jsr: specifier; undefined for any other or invalid specifier. */
export function packageOf(specifier: string): Package | undefined {
  const scheme = /^(?:npm|jsr):/.exec(specifier)?.[0];
  const found = scheme && PACKAGE.exec(specifier.slice(scheme.length))?.groups;
  if (!found) return undefined;
  const { name = '', version, path = '' } = found;
  const known = { version: version || '*', path: path === '/' ? '' : path };
  if (scheme === 'npm:') return { name, ...known };
  const scoped = /^@([^/]+)\/(.+)$/.exec(name);
  return scoped ? { name: `@jsr/${scoped[1]}__${scoped[2]}`, ...known } : undefined;
}

function importsOf(imports: unknown, file: string): Imports {
  if (imports === undefined) return {};
  if (isObject(imports)) {
    const wrong = Object.entries(imports).find(([, target]) => typeof target !== 'string');
    if (wrong === undefined) return imports as Imports;
  }
  throw buildError(`${file}: imports must map names to specifiers`);
}

async function readJsonc(root: string, file: string) {
  const text = await readText(root, file, SETTINGS_MAX_BYTES);
  return text === undefined ? undefined : objectOf(plainJson(text), file);
}

/**
 * Removes comments, and commas before a closing bracket; strings are unchanged. An unterminated
 * string or comment extends to the end, so that one pass is enough for any text.
 */
function plainJson(text: string): string {
  const string = String.raw`"(?:[^"\\]|\\[^])*(?:"|\\?$)`;
  const comments = new RegExp(`(${string})|/\\*(?:[^]*?\\*/|[^]*$)|//[^\\n]*`, 'g');
  const commas = new RegExp(`(${string})|,(?=\\s*[}\\]])`, 'g');
  const bare = text.replace(/^\uFEFF/, '').replace(comments, (_, kept?: string) => kept ?? ' ');
  return bare.replace(commas, (_, kept?: string) => kept ?? '');
}
