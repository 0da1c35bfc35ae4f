/** Texts of a tenant, cut to a size. */
import { StringDecoder } from 'node:string_decoder';

/** The longest prefix of a text with at most `maxBytes` bytes of UTF-8. */
export function cutToBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  const bytes = Buffer.from(text.slice(0, maxBytes)).subarray(0, maxBytes);
  return new StringDecoder('utf8').write(bytes);
}
