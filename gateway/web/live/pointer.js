/** Sends mouse, wheel and touch input as messages. Moves are sent once per animation frame. */
import { modifiersOf } from './keyboard.js';

const BUTTONS = ['left', 'middle', 'right', 'back', 'forward'];
/** Pixels of a line and of a page of wheel scrolling. */
const WHEEL_UNITS = [1, 16, 800];
const TOUCH_EVENTS = {
  touchstart: 'start',
  touchmove: 'move',
  touchend: 'end',
  touchcancel: 'cancel',
};

export function watchPointer({ canvas, screen, send, focus }) {
  watchMouse({ canvas, screen, send, focus });
  watchWheel({ canvas, screen, send });
  watchTouch({ canvas, screen, send, focus });
}

function watchMouse({ canvas, screen, send, focus }) {
  const sendMouse = (name, event, button) =>
    send({
      type: 'mouse',
      event: name,
      ...screen.pointOf(event),
      button,
      buttons: event.buttons & 31,
      modifiers: modifiersOf(event),
      clicks: name === 'move' ? 0 : Math.min(Math.max(event.detail, 1), 3),
    });
  const held = new Set();
  const moved = onFrames((event) => sendMouse('move', event, BUTTONS[[...held][0]] ?? 'none'));
  canvas.addEventListener('mousedown', (event) => {
    event.preventDefault();
    focus();
    moved.flush();
    held.add(event.button);
    sendMouse('down', event, BUTTONS[event.button] ?? 'none');
  });
  canvas.addEventListener('mousemove', (event) => {
    if (held.size === 0) moved.push(event);
  });
  // A drag continues outside the canvas.
  addEventListener('mousemove', (event) => {
    if (held.size > 0) moved.push(event);
  });
  addEventListener('mouseup', (event) => {
    if (!held.has(event.button)) return;
    moved.flush();
    sendMouse('up', event, BUTTONS[event.button] ?? 'none');
    held.delete(event.button);
  });
  canvas.addEventListener('contextmenu', (event) => event.preventDefault());
}

function watchWheel({ canvas, screen, send }) {
  let sum = { deltaX: 0, deltaY: 0 };
  const turned = onFrames((event) => {
    send({ type: 'wheel', ...screen.pointOf(event), ...sum, modifiers: modifiersOf(event) });
    sum = { deltaX: 0, deltaY: 0 };
  });
  const turn = (event) => {
    event.preventDefault();
    const unit = WHEEL_UNITS[event.deltaMode] ?? 1;
    sum = { deltaX: sum.deltaX + event.deltaX * unit, deltaY: sum.deltaY + event.deltaY * unit };
    turned.push(event);
  };
  canvas.addEventListener('wheel', turn, { passive: false });
}

function watchTouch({ canvas, screen, send, focus }) {
  const sendTouch = (event) => {
    event.preventDefault(); // prevents emulated mouse events
    if (event.type === 'touchstart') focus();
    const points = [...event.touches].map((one) => ({
      ...screen.pointOf(one),
      id: one.identifier % 16,
    }));
    send({ type: 'touch', event: TOUCH_EVENTS[event.type], points, modifiers: modifiersOf(event) });
  };
  const moved = onFrames(sendTouch);
  const now = (event) => {
    moved.flush();
    sendTouch(event);
  };
  const later = (event) => {
    event.preventDefault();
    moved.push(event);
  };
  for (const name of Object.keys(TOUCH_EVENTS)) {
    canvas.addEventListener(name, name === 'touchmove' ? later : now, { passive: false });
  }
}

/** Calls `act` with the last event of each animation frame. */
function onFrames(act) {
  let last;
  const flush = () => {
    const event = last;
    last = undefined;
    if (event !== undefined) act(event);
  };
  return {
    flush,
    push(event) {
      if (last === undefined) requestAnimationFrame(flush);
      last = event;
    },
  };
}
