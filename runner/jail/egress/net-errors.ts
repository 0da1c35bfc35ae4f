/**
 * Net errors of failed connections, as Chrome names them. A browser without a proxy finds the
 * reason itself (ERR_NAME_NOT_RESOLVED); behind a proxy it reports ERR_TUNNEL_CONNECTION_FAILED for
 * all of them. So the egress responds with an invalid head that Chrome rejects with a distinct code
 * for each reason, and the relay replaces that code with the reason in Chrome's messages. Pure.
 */

/** Chrome accepts 256 KiB of a head. */
const TOO_LONG = 'x'.repeat(300_000);

/**
 * The responses to CONNECT and to a plain request, and the codes that Chrome reports for them.
 * Built once: the longest has 300 KB, and a page may have thousands of refused connections.
 */
const ENCODINGS = {
  NAME_NOT_RESOLVED: encoding('302 -\r\nlocation: /1\r\nlocation: /2', [
    'RESPONSE_HEADERS_MULTIPLE_LOCATION',
  ]),
  CONNECTION_REFUSED: encoding('200 -\r\ncontent-disposition: a\r\ncontent-disposition: b', [
    'RESPONSE_HEADERS_MULTIPLE_CONTENT_DISPOSITION',
  ]),
  ADDRESS_UNREACHABLE: encoding('200 -\r\ncontent-length: 1\r\ncontent-length: 2', [
    'RESPONSE_HEADERS_MULTIPLE_CONTENT_LENGTH',
  ]),
  CONNECTION_TIMED_OUT: encoding(`200 -\r\nx: ${TOO_LONG}`, ['RESPONSE_HEADERS_TOO_BIG']),
  BLOCKED_BY_CLIENT: encoding('200 -\r\nx: \0', ['INVALID_HTTP_RESPONSE']),
  PROXY_CONNECTION_FAILED: encoding(
    '407 -\r\ncontent-length: 0',
    ['PROXY_AUTH_UNSUPPORTED', 'INVALID_REDIRECT'],
    // a 407 to a plain request is shown as a page, when Chrome knows us as its proxy
    '302 -\r\nlocation: http://[',
  ),
};

export type NetError = keyof typeof ENCODINGS;

/** Of hosts that are denied, and of other things. */
const DENIALS: ReadonlySet<NetError> = new Set(['ADDRESS_UNREACHABLE', 'BLOCKED_BY_CLIENT']);

/** The refusals of an egress so far. */
export type GivenErrors = {
  readonly errors: ReadonlySet<NetError>;
  /** Refused hosts, and those of closed addresses, with the reason; `host:port` of a port. */
  readonly deniedHosts: ReadonlyMap<string, string>;
};

/** Where Chrome reports a failed request: a response or an event, and console messages. */
const IN_REPORTS = '"errorText":"net::ERR_';
const PLACES = [
  IN_REPORTS,
  'Failed to load resource: net::ERR_',
  'connection establishment: net::ERR_',
];
/** In a console message: the address that failed. */
const FAILED_URL = /"url":"([^"\\]+)"/;
const FAILED_SOCKET = /WebSocket connection to '([^'"\\]+)'/;
/** Ours: a message about a failure carries no content. */
const REPORT_MAX_BYTES = 16 << 10;

function encoding(head: string, reported: readonly string[], plain = head) {
  return { tunnel: responseOf(head), plain: responseOf(plain), reported };
}

function responseOf(head: string): Buffer {
  return Buffer.from(`HTTP/1.1 ${head}\r\n\r\n`, 'latin1');
}

/** The response that makes Chrome fail a plain request, or CONNECT. Shared: do not change it. */
export function encodeNetError(error: NetError, isTunnel = false): Buffer {
  return ENCODINGS[error][isTunnel ? 'tunnel' : 'plain'];
}

/**
 * Replaces the codes of these errors in a message of Chrome by the reasons. A console message and
 * the response to Page.navigate also get the explanation, when their host was denied.
 * `answered`: the command, when `raw` is a response.
 */
export function restoreNetErrors(
  raw: Buffer,
  given: GivenErrors,
  answered?: { navigatesTo?: string | undefined },
): Buffer {
  const { errors, deniedHosts } = given;
  if (errors.size === 0 || raw.length > REPORT_MAX_BYTES || !raw.includes('net::ERR_')) return raw;
  for (const error of errors) {
    for (const reported of ENCODINGS[error].reported) {
      for (const start of PLACES) {
        const at = raw.indexOf(`${start}${reported}"`);
        if (at === -1) continue;
        const name = at + start.length;
        const after = raw.subarray(name + reported.length);
        const host = start === IN_REPORTS ? answered?.navigatesTo : loggedHost(raw);
        const why = host !== undefined && DENIALS.has(error) ? deniedHosts.get(host) : undefined;
        const text = why === undefined ? '' : JSON.stringify(`: ${why}`).slice(1, -1);
        return Buffer.concat([raw.subarray(0, name), Buffer.from(error + text), after]);
      }
    }
  }
  return raw;
}

/** Of the address that failed, in a console message; empty when there is none. */
function loggedHost(raw: Buffer): string {
  const message = raw.toString();
  const [, address = ''] = FAILED_SOCKET.exec(message) ?? FAILED_URL.exec(message) ?? [];
  return URL.parse(address)?.hostname ?? '';
}
