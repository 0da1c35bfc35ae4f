/**
 * Sends keys, pasted text and input methods as messages. A hidden text area has the focus: only
 * such an element receives pastes, compositions and the keyboard of a phone.
 */

const ALT = 1;
const CTRL = 2;
const META = 4;
const SHIFT = 8;
/** Key names that phones send instead of a key. */
const NO_KEY = 229;
/** Shortcuts of the viewer itself. */
const OWN_KEYS = ['F11', 'F12'];
const TEXT_MAX_CHARS = 256 * 1024;
const IS_MAC = navigator.platform.startsWith('Mac');

/** Chrome's modifier bits. The command key of a Mac is the control key of the session's machine. */
export function modifiersOf(event) {
  const isAltGraph = event.getModifierState?.('AltGraph') === true;
  const isCtrl = event.ctrlKey || (IS_MAC && event.metaKey);
  return (
    (event.altKey && !isAltGraph ? ALT : 0) |
    (isCtrl && !isAltGraph ? CTRL : 0) |
    (event.metaKey && !IS_MAC ? META : 0) |
    (event.shiftKey ? SHIFT : 0)
  );
}

export function watchKeyboard({ keys, send }) {
  const pressed = new Map();
  const release = () => {
    for (const message of pressed.values()) send({ ...message, event: 'up', modifiers: 0 });
    pressed.clear();
  };
  const paste = (text) => {
    if (text !== '') send({ type: 'text', text: text.slice(0, TEXT_MAX_CHARS) });
    keys.value = '';
  };
  keys.addEventListener('keydown', (event) => {
    if (isLeftAlone(event)) return;
    event.preventDefault();
    const message = messageOf('down', event);
    pressed.set(event.code, message);
    send(message);
  });
  keys.addEventListener('keyup', (event) => {
    if (!pressed.delete(event.code)) return;
    event.preventDefault();
    send(messageOf('up', event));
    // a Mac sends no keyup while the command key is down
    if (event.key === 'Meta') release();
  });
  keys.addEventListener('blur', release);
  keys.addEventListener('paste', (event) => {
    event.preventDefault();
    paste(event.clipboardData?.getData('text/plain') ?? '');
  });
  keys.addEventListener('compositionend', () => paste(keys.value));
  keys.addEventListener('input', (event) => {
    if (event.isComposing) return;
    if (event.inputType === 'deleteContentBackward') tap('Backspace', 8);
    else if (event.inputType === 'insertLineBreak') tap('Enter', 13);
    else paste(keys.value);
  });

  function tap(key, keyCode) {
    const text = key === 'Enter' ? '\r' : '';
    const message = { type: 'key', key, code: key, keyCode, modifiers: 0, location: 0 };
    send({ ...message, event: 'down', text, repeat: false });
    send({ ...message, event: 'up', text: '', repeat: false });
    keys.value = '';
  }
}

/** The text area's input is sent instead, or the key is a shortcut of the viewer. */
function isLeftAlone(event) {
  if (event.isComposing || event.keyCode === NO_KEY || event.key === 'Dead') return true;
  const isPaste = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'v';
  return isPaste || OWN_KEYS.includes(event.key);
}

function messageOf(name, event) {
  const modifiers = modifiersOf(event);
  const { key, code, keyCode, location, repeat } = event;
  return {
    type: 'key',
    event: name,
    key,
    code,
    keyCode: keyCode & 255,
    location: location & 3,
    text: textOf(key, modifiers),
    modifiers,
    repeat,
  };
}

function textOf(key, modifiers) {
  if (key === 'Enter') return '\r';
  return [...key].length === 1 && !(modifiers & (ALT | CTRL | META)) ? key : '';
}
