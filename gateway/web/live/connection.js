/**
 * The connection of a live view. It reconnects after network failures while the link is valid; when
 * the session or the link has ended, it reports that once, with the reason.
 */

/** No reconnect after these: the page or session has ended, or the connection was refused. */
const FINAL_CODES = [1000, 1001, 1003, 1007, 1008, 1009];
const RETRY_FIRST_MS = 250;
const RETRY_MAX_MS = 5_000;
/** Messages that are sent again after a reconnect; keys and clicks are not. */
const LASTING = ['navigate', 'history', 'reload', 'tab'];

/**
 * Calls `on`: `message` for each JSON message, `image` for each frame, `open`, `broken` when it
 * reconnects, and `gone` with the reason, once.
 */
export function openConnection(query, on) {
  const address = viewAddress(query);
  let socket;
  let retryMs = RETRY_FIRST_MS;
  let pending; // the last lasting message while disconnected

  const retry = () => {
    on.broken();
    setTimeout(connect, retryMs);
    retryMs = Math.min(2 * retryMs, RETRY_MAX_MS);
  };
  const closed = async ({ code, reason }) => {
    if (FINAL_CODES.includes(code)) {
      on.gone(`${reason || 'the live view was closed'}`);
      return;
    }
    // Browsers hide why a connection was refused: the reason is requested separately.
    const refusal = await refusalOf(query);
    if (refusal === undefined) retry();
    else on.gone(refusal);
  };
  function connect() {
    socket = new WebSocket(address);
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => {
      retryMs = RETRY_FIRST_MS;
      on.open();
      if (pending !== undefined) socket.send(pending);
      pending = undefined;
    };
    socket.onmessage = ({ data }) => {
      if (typeof data === 'string') on.message(JSON.parse(data));
      else on.image(data);
    };
    socket.onclose = closed;
  }
  connect();
  return {
    send(message) {
      const text = JSON.stringify(message);
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
      else if (LASTING.includes(message.type)) pending = text;
    },
  };
}

/** Relative to this page: a proxy in front may serve it below a path. */
function viewAddress(query) {
  const address = new URL('view', location.href);
  address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  address.searchParams.set('token', query.get('token') ?? '');
  const target = query.get('page');
  if (target !== null) address.searchParams.set('target', target);
  if (query.get('readonly') === 'true') address.searchParams.set('readonly', 'true');
  return address.href;
}

/** The reason why the link is no longer valid; undefined when it is, or when unknown. */
async function refusalOf(query) {
  const address = new URL('live/status', location.href);
  address.searchParams.set('token', query.get('token') ?? '');
  try {
    const answer = await fetch(address, { cache: 'no-store' });
    if (answer.ok || answer.status === 429 || answer.status >= 500) return undefined;
    const { message } = await answer.json();
    return message;
  } catch {
    return undefined; // the network is down: retry
  }
}
