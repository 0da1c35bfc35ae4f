/**
 * What a project written for Deno says of its imports: deno.json's map, and the specifiers npm: and
 * jsr:. Pure but for reading the file. A package of jsr is had from npm's mirror of it, under the
 * name that the mirror gives it. Versions are those of the specifiers: deno.lock has no say.
 */
import { BuildFailure } from '../build-failure.ts';
import { objectOf, readText, SETTINGS_MAX_BYTES } from '../read-file.ts';

const FILES = ['deno.json', 'deno.jsonc'];
const PACKAGE = /^\/?(?<name>(?:@[^/@]+\/)?[^/@]+)(?:@(?<version>[^/]*))?(?<path>\/.*)?$/;

/** Specifier, or beginning of one that ends in a slash -> what stands for it. */
export type Imports = Readonly<Record<string, string>>;

/** A package that a specifier names, as npm knows it. */
export type Package = { name: string; version: string; path: string };

/** Its import map; undefined when the project has no deno.json. Throws a BuildFailure. */
export async function readImports(root: string): Promise<Imports | undefined> {
  for (const file of FILES) {
    const config = await readJsonc(root, file);
    if (config === undefined) continue;
    const { importMap, imports } = config;
    if (imports !== undefined || importMap === undefined) return importsOf(imports, file);
    if (typeof importMap !== 'string' || /^\w+:|^\/|(?:^|\/)\.\.(?:\/|$)/.test(importMap)) {
      throw new BuildFailure('BUILD_ERROR', `${file}: importMap must name a file of the project`);
    }
    const map = await readJsonc(root, importMap);
    if (map === undefined)
      throw new BuildFailure('BUILD_ERROR', `${file}: there is no ${importMap}`);
    return importsOf(map['imports'], importMap);
  }
  return undefined;
}

/** What the map puts for a specifier; undefined when it has nothing for it. */
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

/** As Deno: the name of a package stands for the paths in it, too. */
function prefixOf(key: string, target: string): string {
  if (key.endsWith('/')) return key;
  return /^(?:npm|jsr):/.test(target) ? `${key}/` : '\0';
}

/** The package of an npm: or jsr: specifier; undefined for another, or one that names none. */
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
  throw new BuildFailure('BUILD_ERROR', `${file}: imports must map names to specifiers`);
}

async function readJsonc(root: string, file: string) {
  const text = await readText(root, file, SETTINGS_MAX_BYTES);
  return text === undefined ? undefined : objectOf(plainJson(text), file);
}

/**
 * Without comments and without commas before a closing bracket; strings stay as they are. What does
 * not end ends with the text, so that no text takes more than one pass.
 */
function plainJson(text: string): string {
  const string = String.raw`"(?:[^"\\]|\\[^])*(?:"|\\?$)`;
  const comments = new RegExp(`(${string})|/\\*(?:[^]*?\\*/|[^]*$)|//[^\\n]*`, 'g');
  const commas = new RegExp(`(${string})|,(?=\\s*[}\\]])`, 'g');
  const bare = text.replace(/^\uFEFF/, '').replace(comments, (_, kept?: string) => kept ?? ' ');
  return bare.replace(commas, (_, kept?: string) => kept ?? '');
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
