/** The thread that parses filter lists: a list of 70,000 rules takes most of a second. */
import { readFile } from 'node:fs/promises';
import { FiltersEngine } from '@ghostery/adblocker';

/** In bytes, of one list. Ours: EasyList is 2 MB. */
const LIST_MAX_BYTES = 32 << 20;
const FETCH_TIMEOUT_MS = 30_000;

export default async function parse(lists: readonly string[]): Promise<Uint8Array> {
  const texts = await Promise.all(lists.map(textOf));
  return FiltersEngine.parse(texts.join('\n'), { loadCosmeticFilters: false }).serialize();
}

async function textOf(list: string): Promise<string> {
  if (!/^https?:\/\//.test(list)) return await readFile(list, 'utf8');
  const { status, body } = await fetch(list, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
  if (status !== 200 || body === null) throw new Error(`${list} answered ${status}`);
  let text = '';
  for await (const part of body.pipeThrough(new TextDecoderStream())) {
    text += part;
    if (text.length > LIST_MAX_BYTES) throw new Error(`${list} is longer than 32 MiB`);
  }
  return text;
}
