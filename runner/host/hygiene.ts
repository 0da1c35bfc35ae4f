/**
 * Whether a run left its thread clean: no new timers, sockets or other active resources, and every
 * intrinsic prototype with its original properties. Globals and module state may remain: warm reuse
 * keeps them, as on Lambda.
 */
import { closeSync, openSync } from 'node:fs';
import process from 'node:process';
import { MessagePort } from 'node:worker_threads';

const PROTOTYPES: readonly object[] = [
  ...[Object, Function, Array, String, Number, Boolean, Symbol, BigInt, Date, RegExp, Error],
  ...[Map, Set, WeakMap, WeakSet, Promise, ArrayBuffer, Uint8Array, DataView],
  // a thread gets its runs and reports outcomes through these
  ...[MessagePort, EventTarget],
].map((intrinsic) => intrinsic.prototype);
const NAMESPACES: readonly object[] = [JSON, Math, Reflect, Object, Array, Promise, Number, String];
const CHECKED = [...PROTOTYPES, ...NAMESPACES];

/** Captured before a tenant's code can replace them. */
const { ownKeys, getOwnPropertyDescriptor } = Reflect;
const open = openSync;
const close = closeSync;

/**
 * Ours: of the 1,024 that a host may open (runner/functions/host-jail.ts). The rest is for new
 * threads: a host without free descriptors can start none, and hangs (seen).
 */
const DESCRIPTORS_MAX = 768;

type Property = { key: PropertyKey; value: unknown };
let properties: Property[][] = [];
let resources = new Map<string, number>();

/** Whether the host can still open files; `path` must be readable. */
export function hasDescriptors(path: string): boolean {
  try {
    const descriptor = open(path, 'r');
    close(descriptor);
    // the lowest free one; under Deno a running number, not a descriptor
    return process.versions['deno'] !== undefined || descriptor < DESCRIPTORS_MAX;
  } catch {
    return false;
  }
}

/** Records the state after the bundle was loaded. */
export function markBaseline(): void {
  properties = CHECKED.map(propertiesOf);
  resources = count(process.getActiveResourcesInfo());
}

/** Whether nothing was added since the baseline, given the active resources. */
export function isClean(active: readonly string[]): boolean {
  for (const [name, number] of count(active)) {
    if (number > (resources.get(name) ?? 0)) return false;
  }
  return CHECKED.every((object, index) => isSame(propertiesOf(object), properties[index] ?? []));
}

function count(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function propertiesOf(object: object): Property[] {
  return ownKeys(object).map((key) => {
    const property = getOwnPropertyDescriptor(object, key);
    return { key, value: property?.get ?? property?.value };
  });
}

function isSame(now: Property[], before: Property[]): boolean {
  if (now.length !== before.length) return false;
  return now.every(({ key, value }, index) => {
    const old = before[index];
    return old !== undefined && old.key === key && Object.is(old.value, value);
  });
}
