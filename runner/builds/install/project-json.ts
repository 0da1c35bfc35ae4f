/** What package.json and lock files have in common. Used in the build's jail. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Our own, which the service supplies. */
export const SDK = 'tabern';
export const KINDS = [
  ...['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'],
] as const;

export type Json = Record<string, unknown>;

/** Whether the SDK was among its dependencies; it is none any more. */
export function dropFrom(json: Json): boolean {
  const kinds = KINDS.filter((kind) => entriesOf(json[kind]).some(([name]) => name === SDK));
  for (const kind of kinds) delete (json[kind] as Json)[SDK];
  return kinds.length > 0;
}

export async function writeJson(root: string, file: string, json: Json): Promise<void> {
  await writeFile(join(root, file), `${JSON.stringify(json, null, 2)}\n`);
}

export function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

/** Of an object and all that it holds, each with the name nearest to it. */
export function stringsOf(value: unknown, name = ''): [name: string, text: string][] {
  if (typeof value === 'string') return [[name, value]];
  return entriesOf(value).flatMap(([key, one]) => stringsOf(one, key));
}

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
