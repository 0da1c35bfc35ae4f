/**
 * The body of a delivery: the envelope of proto/spec/webhooks.md 2. Pure. Created once per event;
 * every attempt to every endpoint sends the same bytes. Never contains params, in which customers
 * pass secrets.
 */

/** In bytes of JSON. Source: proto/spec/webhooks.md 2. */
export const BODY_MAX_BYTES = 20 * 1024;
/** In bytes of UTF-8. Source: proto/spec/webhooks.md 2. */
export const CAUSE_MAX_BYTES = 2 * 1024;

/** A fact with its resource. `data` is JSON: the state of the resource at that moment. */
export type Event = {
  id: string;
  type: string;
  resourceId: string;
  projectId: string;
  data: Readonly<Record<string, unknown>>;
  /** When it happened, in Unix milliseconds. */
  at: number;
};

/**
 * The bytes to send. `results` that exceed the limit become null and `resultsTruncated` true. Ours:
 * when the rest is still too large (a build of many functions with large schemas), its largest
 * members become null and are listed in `truncated`.
 */
export function envelope(event: Event): Buffer {
  const { params: _, ...data } = event.data;
  const members: Record<string, unknown> = { ...data };
  if ('cause' in members) members['cause'] = shortCause(members['cause']);
  if ('results' in members) members['resultsTruncated'] = false;

  let body = serialised(event, members);
  if (body.length > BODY_MAX_BYTES && 'results' in members) {
    body = serialised(event, Object.assign(members, { results: null, resultsTruncated: true }));
  }
  const truncated: string[] = [];
  for (const name of bySize(members)) {
    if (body.length <= BODY_MAX_BYTES) break;
    truncated.push(name);
    body = serialised(event, Object.assign(members, { [name]: null, truncated }));
  }
  return body;
}

function serialised(event: Event, data: Record<string, unknown>): Buffer {
  const { id, type, at, resourceId, projectId } = event;
  const timestamp = new Date(at).toISOString();
  return Buffer.from(JSON.stringify({ id, type, timestamp, resourceId, projectId, data }));
}

function bySize(members: Record<string, unknown>): string[] {
  const sizes = Object.entries(members).map(
    ([name, value]) => [name, JSON.stringify(value)?.length ?? 0] as const,
  );
  return sizes.sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

function shortCause(cause: unknown): unknown {
  if (typeof cause !== 'object' || cause === null || !('message' in cause)) return cause;
  return { ...cause, message: cutUtf8(String(cause.message), CAUSE_MAX_BYTES) };
}

/** The longest prefix of the text with at most `maxBytes` bytes that splits no character. */
export function cutUtf8(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString('utf8', 0, end);
}
