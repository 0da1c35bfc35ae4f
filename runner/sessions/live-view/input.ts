/**
 * Validates messages from a live view's page and translates them into Chrome's commands. The sender
 * is untrusted: every field is checked, and nothing unlisted is forwarded. Pure.
 */

import { JsonScan } from '../../../proto/json/json-scan.ts';

/** Ours, in characters: pasted text. */
const TEXT_MAX_CHARS = 256 << 10;
const URL_MAX_CHARS = 64 << 10;
/** Chrome's names of keys are far shorter. */
const NAME_MAX_CHARS = 64;
/** Fingers. */
const TOUCHES_MAX = 16;
/** Ours: JSON.parse is slow on many values. Sixteen fingers need fewer. */
const VALUES_MAX = 200;
/** In pixels, either direction: larger than any page is shown. */
const COORDINATE_MAX = 1e6;

const BUTTONS = ['none', 'left', 'middle', 'right', 'back', 'forward'] as const;
const MOUSE = { move: 'mouseMoved', down: 'mousePressed', up: 'mouseReleased' } as const;
const TOUCH = {
  start: 'touchStart',
  move: 'touchMove',
  end: 'touchEnd',
  cancel: 'touchCancel',
} as const;

export type Command = { method: string; params: Record<string, unknown> };

export type ViewerMessage =
  | { kind: 'ack' }
  | { kind: 'input'; command: Command }
  | { kind: 'navigate'; url: string }
  | { kind: 'history'; by: -1 | 1 }
  | { kind: 'reload' }
  | { kind: 'tab'; id: string }
  | { kind: 'dialog'; accept: boolean; text: string }
  | { kind: 'done'; id: string };

type Fields = Readonly<Record<string, unknown>>;

/** The parsed message; undefined for anything that our page does not send. */
export function readMessage(bytes: Buffer): ViewerMessage | undefined {
  const fields = parseObject(bytes);
  if (fields === undefined) return undefined;
  switch (fields['type']) {
    case 'ack':
      return { kind: 'ack' };
    case 'mouse':
      return input('Input.dispatchMouseEvent', mouse(fields));
    case 'wheel':
      return input('Input.dispatchMouseEvent', wheel(fields));
    case 'key':
      return input('Input.dispatchKeyEvent', key(fields));
    case 'touch':
      return input('Input.dispatchTouchEvent', touch(fields));
    case 'text':
      return input('Input.insertText', complete({ text: string(fields['text'], TEXT_MAX_CHARS) }));
    case 'navigate': {
      const url = string(fields['url'], URL_MAX_CHARS);
      return url === undefined ? undefined : { kind: 'navigate', url };
    }
    case 'history': {
      const { by } = fields;
      return by === -1 || by === 1 ? { kind: 'history', by } : undefined;
    }
    case 'reload':
      return { kind: 'reload' };
    case 'tab': {
      const id = string(fields['id'], NAME_MAX_CHARS);
      return id === undefined ? undefined : { kind: 'tab', id };
    }
    case 'done': {
      const id = string(fields['id'], NAME_MAX_CHARS);
      return id === undefined ? undefined : { kind: 'done', id };
    }
    case 'dialog': {
      const { accept } = fields;
      const text = string(fields['text'], TEXT_MAX_CHARS);
      if (typeof accept !== 'boolean' || text === undefined) return undefined;
      return { kind: 'dialog', accept, text };
    }
    default:
      return undefined;
  }
}

type Params = Record<string, unknown> | undefined;

function input(method: string, params: Params): ViewerMessage | undefined {
  return params && { kind: 'input', command: { method, params } };
}

/** Undefined when a field is missing. */
function complete<T extends object>(
  fields: {
    [Name in keyof T]: T[Name] | undefined;
  },
): T | undefined {
  return Object.values(fields).includes(undefined) ? undefined : (fields as T);
}

function mouse(fields: Fields): Params {
  return complete({
    type: named(MOUSE, fields['event']),
    ...point(fields),
    button: BUTTONS.find((one) => one === fields['button']),
    buttons: integer(fields['buttons'], 31),
    clickCount: integer(fields['clicks'], 3),
    modifiers: integer(fields['modifiers'], 15),
  });
}

function wheel(fields: Fields): Params {
  return complete({
    type: 'mouseWheel',
    ...point(fields),
    deltaX: coordinate(fields['deltaX']),
    deltaY: coordinate(fields['deltaY']),
    modifiers: integer(fields['modifiers'], 15),
  });
}

function key(fields: Fields): Params {
  const { event } = fields;
  const text = string(fields['text'], NAME_MAX_CHARS);
  const keyCode = integer(fields['keyCode'], 255);
  const location = integer(fields['location'], 3);
  if (text === undefined || location === undefined) return undefined;
  if (event !== 'down' && event !== 'up') return undefined;
  const pressed = text === '' ? 'rawKeyDown' : 'keyDown';
  return complete({
    type: event === 'up' ? 'keyUp' : pressed,
    key: string(fields['key'], NAME_MAX_CHARS),
    code: string(fields['code'], NAME_MAX_CHARS),
    modifiers: integer(fields['modifiers'], 15),
    windowsVirtualKeyCode: keyCode,
    nativeVirtualKeyCode: keyCode,
    autoRepeat: fields['repeat'] === true,
    isKeypad: location === 3,
    ...(event === 'down' && text !== '' ? { text, unmodifiedText: text } : {}),
    // Chrome accepts 1 and 2 here; 3 is expressed by isKeypad
    ...(location === 1 || location === 2 ? { location } : {}),
  });
}

function touch(fields: Fields): Params {
  const { points } = fields;
  if (!Array.isArray(points) || points.length > TOUCHES_MAX) return undefined;
  const touchPoints = points.flatMap((one: unknown) => touchPoint(one) ?? []);
  if (touchPoints.length < points.length) return undefined;
  const modifiers = integer(fields['modifiers'], 15);
  return complete({ type: named(TOUCH, fields['event']), touchPoints, modifiers });
}

function touchPoint(one: unknown): Params {
  if (typeof one !== 'object' || one === null) return undefined;
  const fields = one as Fields;
  return complete({ ...point(fields), id: integer(fields['id'], TOUCHES_MAX) });
}

function point({ x, y }: Fields): { x: number | undefined; y: number | undefined } {
  return { x: coordinate(x), y: coordinate(y) };
}

function coordinate(value: unknown): number | undefined {
  return typeof value === 'number' && Math.abs(value) <= COORDINATE_MAX ? value : undefined;
}

function integer(value: unknown, max: number): number | undefined {
  const isWhole = typeof value === 'number' && Number.isInteger(value);
  return isWhole && value >= 0 && value <= max ? value : undefined;
}

function string(value: unknown, maxChars: number): string | undefined {
  return typeof value === 'string' && value.length <= maxChars ? value : undefined;
}

/** The name is untrusted: `constructor` must not match an inherited property. */
function named<T>(table: Readonly<Record<string, T>>, name: unknown): T | undefined {
  return typeof name === 'string' && Object.hasOwn(table, name) ? table[name] : undefined;
}

function parseObject(bytes: Buffer): Fields | undefined {
  try {
    new JsonScan(bytes, { valuesMax: VALUES_MAX });
    const value: unknown = JSON.parse(bytes.toString());
    return typeof value === 'object' && value !== null ? (value as Fields) : undefined;
  } catch {
    return undefined; // like anything else that our page does not send
  }
}
