/** The answers of a service, each with its request, from the two directions of a connection. */
import type { Seen } from './judge.ts';
import { type Framing, type Head, readMessages } from './messages.ts';

/** In bytes. A longer answer is a file, or a list that shorter ones stand for. */
const TEXT_MAX = 8 << 20;
const REQUEST = /^([A-Z]+) (\S+) HTTP\/1\.[01]$/;
const ANSWER = /^HTTP\/1\.1 (\d{3}) /;

type Asked = Pick<Seen, 'method' | 'path'>;
/** What answers no request that could be read. */
const NOTHING: Asked = { method: '', path: '' };

export type Overhearing = {
  asked(chunk: Buffer): void;
  answered(chunk: Buffer): void;
  /** The service says no more. */
  ended(): void;
};

/** Tells of each answer once it is whole; of one that was cut off, nothing. */
export function overhear(tell: (seen: Seen) => void): Overhearing {
  const waiting: Asked[] = [];
  const requests = readMessages({
    head(head) {
      const [, method = '', target = ''] = REQUEST.exec(head.start) ?? [];
      if (method === '') return 'over';
      waiting.push({ method, path: target.split('?')[0] ?? '' });
      return framing(head, 0);
    },
    body: () => undefined,
    whole: () => undefined,
  });
  const answers = readAnswers(() => waiting.shift() ?? NOTHING, tell);
  return { asked: requests.push, answered: answers.push, ended: answers.end };
}

function readAnswers(next: () => Asked, tell: (seen: Seen) => void) {
  let seen: Seen | undefined;
  let parts: Buffer[] = [];
  let bytes = 0;
  return readMessages({
    head(head) {
      const status = Number(ANSWER.exec(head.start)?.[1] ?? 0);
      seen = undefined;
      if (status >= 100 && status < 200 && status !== 101) return 0; // the answer is yet to come
      const asked = next();
      const type = head.headers.get('content-type') ?? '';
      seen = { ...asked, status, type, text: '' };
      [parts, bytes] = [[], 0];
      if (status === 101 || status === 0) {
        tell(seen);
        return 'over';
      }
      if (asked.method === 'HEAD' || status === 204 || status === 304) return 0;
      return framing(head, 'close');
    },
    body(part) {
      bytes += part.length;
      if (bytes <= TEXT_MAX) parts.push(Buffer.from(part));
    },
    whole() {
      if (seen === undefined) return;
      const isText = /json/.test(seen.type) && bytes <= TEXT_MAX;
      tell({ ...seen, text: bytes === 0 ? '' : isText ? `${Buffer.concat(parts)}` : undefined });
    },
  });
}

function framing({ headers }: Head, otherwise: Framing): Framing {
  if (headers.get('transfer-encoding') === 'chunked') return 'chunked';
  const length = headers.get('content-length');
  return length === undefined ? otherwise : Number(length);
}
