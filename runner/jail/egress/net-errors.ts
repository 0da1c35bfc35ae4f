/**
 * Net errors of failed connections, as Chrome names them. A browser without a proxy finds the
 * reason itself (ERR_NAME_NOT_RESOLVED); behind a proxy it reports ERR_TUNNEL_CONNECTION_FAILED for
 * all of them. So the egress responds with an invalid head that Chrome rejects with a distinct code
 * for each reason, and the relay replaces that code with the reason in Chrome's messages. Pure.
 */

import { must } from '../../../proto/common/must.ts';

export type NetError =
  | 'NAME_NOT_RESOLVED'
  | 'CONNECTION_REFUSED'
  | 'CONNECTION_TIMED_OUT'
  | 'ADDRESS_UNREACHABLE'
  | 'BLOCKED_BY_CLIENT'
  | 'PROXY_CONNECTION_FAILED';

/**
 * `reported`: the codes that Chrome reports for `head` as a response to CONNECT, and for `plain`
 * (or `head`, if absent) as a response to a plain request.
 */
type Encoding = { head: string; plain?: string; reported: readonly string[] };

/** Chrome accepts 256 KiB of a head. */
const TOO_LONG = 'x'.repeat(300_000);

const ENCODINGS: Readonly<Record<NetError, Encoding>> = {
  NAME_NOT_RESOLVED: {
    head: '302 -\r\nlocation: /1\r\nlocation: /2',
    reported: ['RESPONSE_HEADERS_MULTIPLE_LOCATION'],
  },
  CONNECTION_REFUSED: {
    head: '200 -\r\ncontent-disposition: a\r\ncontent-disposition: b',
    reported: ['RESPONSE_HEADERS_MULTIPLE_CONTENT_DISPOSITION'],
  },
  ADDRESS_UNREACHABLE: {
    head: '200 -\r\ncontent-length: 1\r\ncontent-length: 2',
    reported: ['RESPONSE_HEADERS_MULTIPLE_CONTENT_LENGTH'],
  },
  CONNECTION_TIMED_OUT: {
    head: `200 -\r\nx: ${TOO_LONG}`,
    reported: ['RESPONSE_HEADERS_TOO_BIG'],
  },
  BLOCKED_BY_CLIENT: { head: '200 -\r\nx: \0', reported: ['INVALID_HTTP_RESPONSE'] },
  PROXY_CONNECTION_FAILED: {
    head: '407 -\r\ncontent-length: 0',
    // a 407 to a plain request is shown as a page, when Chrome knows us as its proxy
    plain: '302 -\r\nlocation: http://[',
    reported: ['PROXY_AUTH_UNSUPPORTED', 'INVALID_REDIRECT'],
  },
};

/** Where Chrome reports a failed request: a response or an event, and console messages. */
const PLACES = ['"errorText":"', 'Failed to load resource: ', 'connection establishment: '];
/** Ours: a message about a failure carries no content. */
const REPORT_MAX_BYTES = 16 << 10;

/** Built once: the longest has 300 KB, and a page may have thousands of refused connections. */
const ANSWERS = new Map(
  Object.entries(ENCODINGS).map(([error, { head, plain }]) => {
    const tunnel = answerOf(head);
    return [error, { tunnel, plain: plain === undefined ? tunnel : answerOf(plain) }];
  }),
);

function answerOf(head: string): Buffer {
  return Buffer.from(`HTTP/1.1 ${head}\r\n\r\n`, 'latin1');
}

/** The response that makes Chrome fail a plain request, or CONNECT. Shared: do not change it. */
export function encodeNetError(error: NetError, isTunnel = false): Buffer {
  const { tunnel, plain } = must(ANSWERS.get(error), 'an answer for each reason');
  return isTunnel ? tunnel : plain;
}

/** Replaces the codes of these errors in a message of Chrome by the reasons. */
export function restoreNetErrors(raw: Buffer, given: ReadonlySet<NetError>): Buffer {
  if (given.size === 0 || raw.length > REPORT_MAX_BYTES || !raw.includes('net::ERR_')) return raw;
  for (const error of given) {
    for (const reported of ENCODINGS[error].reported) {
      for (const place of PLACES) {
        const start = `${place}net::ERR_`;
        const at = raw.indexOf(`${start}${reported}"`);
        if (at === -1) continue;
        const name = at + start.length;
        const after = raw.subarray(name + reported.length);
        return Buffer.concat([raw.subarray(0, name), Buffer.from(error), after]);
      }
    }
  }
  return raw;
}
