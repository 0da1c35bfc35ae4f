/**
 * The line to the session. It is mended when the network breaks it, for as long as the link is
 * good; when the session or the link has ended, that is told once, with the reason.
 */

/** Ends that no new connection would change: the page or session is over, or we were refused. */
const FINAL_CODES = [1000, 1001, 1003, 1007, 1008, 1009];
const RETRY_FIRST_MS = 250;
const RETRY_MAX_MS = 5_000;
/** What is still meant when the line is there again; a key or a click of before is not. */
const LASTING = ['navigate', 'history', 'reload', 'tab'];

/**
 * `on` is told: `message` each JSON message, `picture` each picture, `open`, `broken` when it is
 * being mended, and `gone` with the reason, once.
 */
export function openConnection(query, on) {
  const address = viewAddress(query);
  let socket;
  let retryMs = RETRY_FIRST_MS;
  let wish; // the last that was asked for while there was no line

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
    // A refused connection tells a page nothing: the reason is asked for.
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
      if (wish !== undefined) socket.send(wish);
      wish = undefined;
    };
    socket.onmessage = ({ data }) => {
      if (typeof data === 'string') on.message(JSON.parse(data));
      else on.picture(data);
    };
    socket.onclose = closed;
  }
  connect();
  return {
    send(message) {
      const text = JSON.stringify(message);
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
      else if (LASTING.includes(message.type)) wish = text;
    },
  };
}

/** Beside this page: a proxy in front may have put all of it below a path. */
function viewAddress(query) {
  const address = new URL('view', location.href);
  address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  address.searchParams.set('token', query.get('token') ?? '');
  const target = query.get('page');
  if (target !== null) address.searchParams.set('target', target);
  if (query.get('readonly') === 'true') address.searchParams.set('readonly', 'true');
  return address.href;
}

/** Why the link is good no more; undefined when it is, or nobody can say now. */
async function refusalOf(query) {
  const address = new URL('live/status', location.href);
  address.searchParams.set('token', query.get('token') ?? '');
  try {
    const answer = await fetch(address, { cache: 'no-store' });
    if (answer.ok || answer.status === 429 || answer.status >= 500) return undefined;
    const { message } = await answer.json();
    return message;
  } catch {
    return undefined; // the network is down: try again
  }
}
