/**
 * Reads frames of a function host at a bounded cost: tenants control them, and JSON.parse takes a
 * second or more for 4 MiB with many members. Pure.
 */
import { JsonScan } from '../../proto/json/json-scan.ts';
import { type FromHost, LOG_LINES_MAX, readFromHost } from '../host/messages.ts';

/** Ours: a frame with the maximum of lines, each an object of three members. */
const VALUES_MAX = 4 * LOG_LINES_MAX + 100;
/** Ours: for ten functions of 10,000 each; JSON.parse takes about 200 ms for so many members. */
const MANIFEST_VALUES_MAX = 100_000;
const LINE_BREAK = 10;

/** Throws for a frame that our host never sends. */
export function readHostFrame(body: Buffer): FromHost {
  const end = body.indexOf(LINE_BREAK);
  new JsonScan(end === -1 ? body : body.subarray(0, end), { valuesMax: VALUES_MAX });
  const message = readFromHost(body);
  // the runner parses manifests; a result stays text
  if (message.type === 'manifests') {
    new JsonScan(body.subarray(end + 1), { valuesMax: MANIFEST_VALUES_MAX });
  }
  return message;
}
