/** Pairs the responses of a service with their requests, from both directions of a connection. */
import type { Seen } from './judge.ts';
import { type Framing, type Head, readMessages } from './messages.ts';

/** In bytes. A longer response is a file, or a list of the same form as shorter ones. */
const TEXT_MAX = 8 << 20;
const REQUEST = /^([A-Z]+) (\S+) HTTP\/1\.[01]$/;
const ANSWER = /^HTTP\/1\.1 (\d{3}) /;

type Asked = Pick<Seen, 'method' | 'path'>;
/** The request of a response to unreadable bytes. */
const NOTHING: Asked = { method: '', path: '' };

export type Overhearing = {
  asked(chunk: Buffer): void;
  answered(chunk: Buffer): void;
  /** The service has ended its direction. */
  ended(): void;
};

/** Reports each response when it is complete; does not report a response that was cut off. */
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
      if (status >= 100 && status < 200 && status !== 101) return 0; // the final response follows
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
