/** Operations on package.json and lock files. Used in the build's jail. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isObject, type Json } from '../read-file.ts';

/** Names of the SDK's packages; the service supplies both. */
export const SDKS: readonly string[] = ['tabern', '@tabern/functions'];
export const KINDS = [
  'dependencies',
  'devDependencies',
  'optionalDependencies',
  'peerDependencies',
] as const;

/** Removes the SDK from the dependencies. Returns whether it was one. */
export function dropFrom(json: Json): boolean {
  const isSdk = ([name]: [string, unknown]) => SDKS.includes(name);
  const kinds = KINDS.filter((kind) => entriesOf(json[kind]).some(isSdk));
  for (const kind of kinds) dropMembers(json[kind], SDKS);
  return kinds.length > 0;
}

/** Removes the members from an object; any other value is left as it is. */
export function dropMembers(value: unknown, names: readonly string[]): void {
  if (isObject(value)) for (const name of names) delete value[name];
}

export async function writeJson(root: string, file: string, json: Json): Promise<void> {
  await writeFile(join(root, file), `${JSON.stringify(json, null, 2)}\n`);
}

export function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

/** All strings of a value at any depth, each with its nearest key. */
export function stringsOf(value: unknown, name = ''): [name: string, text: string][] {
  if (typeof value === 'string') return [[name, value]];
  return entriesOf(value).flatMap(([key, one]) => stringsOf(one, key));
}
