/**
 * Frames of a function host, read at a bounded cost: a host's bytes are a tenant's, and JSON.parse
 * takes a second and more of 4 MiB with many members. Pure.
 */
import { JsonScan } from '../browser/cdp/scan.ts';
import { type FromHost, LOG_LINES_MAX, readFromHost } from '../host/messages.ts';

/** Ours: a frame of as many lines as it may have, each an object of three members. */
const VALUES_MAX = 4 * LOG_LINES_MAX + 100;
/** Ours: of ten functions of 10,000 each; JSON.parse takes some 200 ms for so many members. */
const MANIFEST_VALUES_MAX = 100_000;
const LINE_BREAK = 10;

/** Throws an error for what no host of ours sends. */
export function readHostFrame(body: Buffer): FromHost {
  const end = body.indexOf(LINE_BREAK);
  new JsonScan(end === -1 ? body : body.subarray(0, end), undefined, VALUES_MAX);
  const message = readFromHost(body);
  // the runner parses manifests; a result is text and stays text
  if (message.type === 'manifests') {
    new JsonScan(body.subarray(end + 1), undefined, MANIFEST_VALUES_MAX);
  }
  return message;
}
