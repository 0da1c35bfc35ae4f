/**
 * Header fields as a proxy passes them on: in order, as spelled, without those that concern one hop
 * only. Pure.
 */

export type Field = {
  /** As spelled. */
  name: string;
  /** The same in lower case. */
  key: string;
  value: string;
};

/**
 * RFC 9110 7.6.1. `upgrade` too: a WebSocket goes through CONNECT. `close` is reserved, for it
 * would be listed by `Connection: close`.
 */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'close',
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Those that `Connection` lists are dropped too. */
export function forwarded(fields: readonly Field[]): Field[] {
  const listed = new Set(valuesOf(fields, 'connection').flatMap(listOf));
  return fields.filter(({ key }) => !HOP_BY_HOP.has(key) && !listed.has(key));
}

/** Whether who said that ends the connection after this message. */
export function saysClose(fields: readonly Field[]): boolean {
  const said = [...valuesOf(fields, 'connection'), ...valuesOf(fields, 'proxy-connection')];
  return said.some((value) => listOf(value).includes('close'));
}

export function valuesOf(fields: readonly Field[], key: string): string[] {
  return fields.filter((field) => field.key === key).map(({ value }) => value);
}

function listOf(value: string): string[] {
  return value.split(',').map((one) => one.trim().toLowerCase());
}
