/**
 * The page of a live view. URL options: `page`, the tab to show (default: the active one),
 * `navbar=false`, no browser frame, and `readonly=true`, no input. When the session disconnects,
 * the embedding window receives the message that is defined in proto/spec/sessions.md 6.
 */
import { openConnection } from './connection.js';
import { openDialog } from './dialog.js';
import { openFrame } from './frame.js';
import { openHandoff } from './handoff.js';
import { watchKeyboard } from './keyboard.js';
import { watchPointer } from './pointer.js';
import { openScreen } from './screen.js';

/** Source: proto/spec/sessions.md 6. */
const GONE = 'browserbase-disconnected';
const NOTICE_MS = 5_000;

const query = new URLSearchParams(location.search);
const isReadOnly = query.get('readonly') === 'true';
const byId = (id) => document.getElementById(id);
const overlay = byId('over');
const keys = byId('keys');
const canvas = byId('screen');
const screen = openScreen(canvas);

const connection = openConnection(query, {
  open: () => cover(undefined),
  broken: () => cover('Reconnecting…'),
  gone(reason) {
    dialog.show(null);
    cover(`${reason.charAt(0).toUpperCase()}${reason.slice(1)}`);
    parent.postMessage(GONE, '*');
  },
  message: receive,
  async image(bytes) {
    await screen.draw(bytes);
    await shown();
    connection.send({ type: 'ack' });
  },
});
const { send } = connection;
const dialog = openDialog({ byId, send, isReadOnly });
const handoff = openHandoff({ byId, send, isReadOnly });
const frame = query.getAll('navbar').includes('false') ? undefined : framed();
if (!isReadOnly) {
  const focus = () => keys.focus({ preventScroll: true });
  watchPointer({ canvas, screen, send, focus });
  watchKeyboard({ keys, send });
}

function framed() {
  const names = ['frame', 'tabs', 'back', 'forward', 'reload', 'address'];
  const elements = Object.fromEntries(names.map((name) => [name, byId(name)]));
  return openFrame({ elements, send, isReadOnly });
}

function receive(message) {
  switch (message.type) {
    case 'size':
      screen.resize(message);
      break;
    case 'tabs':
      frame?.show(message.tabs);
      cover(message.tabs.length === 0 ? 'No tab is open.' : undefined);
      break;
    case 'dialog':
      dialog.show(message.dialog);
      break;
    case 'notice':
      note(message.text);
      break;
    case 'handoff':
      handoff.show(message.handoff);
      break;
    case 'again':
      handoff.again();
      break;
    case 'control':
      byId('control').hidden = !message.isByOther;
      break;
  }
}

/** A hidden page stops the frames. */
async function shown() {
  if (!document.hidden) return;
  await new Promise((resolve) => {
    document.addEventListener('visibilitychange', resolve, { once: true });
  });
}

function cover(text) {
  overlay.hidden = text === undefined;
  overlay.textContent = text ?? '';
}

let noticeTimer;
function note(text) {
  const notice = byId('notice');
  notice.textContent = text;
  notice.hidden = false;
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => {
    notice.hidden = true;
  }, NOTICE_MS);
}
