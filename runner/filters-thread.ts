/** The thread that reads filter lists: parsing one of 70,000 rules takes most of a second. */
import { readFile } from 'node:fs/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { FiltersEngine } from '@ghostery/adblocker';
import { request } from 'undici';
import { must } from '../proto/must.ts';

/** In bytes, of one list. Ours: EasyList is 2 MB. */
const LIST_MAX_BYTES = 32 << 20;
const FETCH_TIMEOUT_MS = 30_000;

const lists = workerData as readonly string[];
const texts = await Promise.all(lists.map(textOf));
const engine = FiltersEngine.parse(texts.join('\n'), { loadCosmeticFilters: false });
must(parentPort, 'the thread that asked').postMessage(engine.serialize());

async function textOf(list: string): Promise<string> {
  if (!/^https?:\/\//.test(list)) return await readFile(list, 'utf8');
  const { statusCode, body } = await request(list, {
    signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
  });
  if (statusCode !== 200) throw new Error(`${list} answered ${statusCode}`);
  let text = '';
  for await (const part of body.setEncoding('utf8')) {
    text += part;
    if (text.length > LIST_MAX_BYTES) throw new Error(`${list} is longer than 32 MiB`);
  }
  return text;
}
