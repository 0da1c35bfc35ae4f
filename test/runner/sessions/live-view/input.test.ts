/** Messages of a viewer: every field is checked, and unknown fields are not forwarded. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readMessage, type ViewerMessage } from '../../../../runner/sessions/live-view/input.ts';

const test = suite('runner/sessions/live-view/input');

const MOUSE = {
  type: 'mouse',
  event: 'down',
  x: 1,
  y: 2.5,
  button: 'left',
  buttons: 1,
  clicks: 2,
  modifiers: 8,
};
const WHEEL = { type: 'wheel', x: 1, y: 2, deltaX: -3, deltaY: 4, modifiers: 0 };
const KEY = {
  type: 'key',
  event: 'down',
  key: 'a',
  code: 'KeyA',
  keyCode: 65,
  text: 'a',
  modifiers: 0,
  location: 0,
  repeat: false,
};
const TOUCH = { type: 'touch', event: 'start', points: [{ x: 1, y: 2, id: 0 }], modifiers: 0 };

function read(message: unknown): ViewerMessage | undefined {
  return readMessage(Buffer.from(JSON.stringify(message)));
}

function commandOf(message: unknown): { method: string; params: Record<string, unknown> } {
  const said = read(message);
  if (said?.kind !== 'input') throw new Error('no input');
  return said.command;
}

test('input becomes a command of Chrome, without unknown fields', () => {
  const { method, params } = commandOf({ ...MOUSE, pointerType: 'pen', sessionId: 'other' });
  assert.is(method, 'Input.dispatchMouseEvent');
  const at = { x: 1, y: 2.5, button: 'left', buttons: 1, clickCount: 2, modifiers: 8 };
  assert.equal(params, { type: 'mousePressed', ...at });
  assert.is(commandOf(WHEEL).params['type'], 'mouseWheel');
  assert.is(commandOf({ type: 'text', text: 'pasted' }).method, 'Input.insertText');
  assert.equal(commandOf(TOUCH).params['touchPoints'], [{ x: 1, y: 2, id: 0 }]);
});

test('a key with text types on press only, a key without text never', () => {
  assert.is(commandOf(KEY).params['type'], 'keyDown');
  assert.is(commandOf(KEY).params['text'], 'a');
  assert.is(commandOf({ ...KEY, text: '' }).params['type'], 'rawKeyDown');
  const up = commandOf({ ...KEY, event: 'up' }).params;
  assert.is(up['type'], 'keyUp');
  assert.is(up['text'], undefined);
  assert.is(commandOf({ ...KEY, location: 3 }).params['isKeypad'], true);
});

test('messages that are not input are read', () => {
  assert.equal(read({ type: 'ack' }), { kind: 'ack' });
  assert.equal(read({ type: 'reload' }), { kind: 'reload' });
  assert.equal(read({ type: 'history', by: -1 }), { kind: 'history', by: -1 });
  assert.equal(read({ type: 'tab', id: 'x' }), { kind: 'tab', id: 'x' });
  const answer = { accept: true, text: 'x' };
  assert.equal(read({ type: 'dialog', ...answer }), { kind: 'dialog', ...answer });
  assert.equal(read({ type: 'navigate', url: 'x' }), { kind: 'navigate', url: 'x' });
});

test('a missing, mistyped or excessive field makes a message invalid', () => {
  const strange = [null, 'x', [], {}, -1e9, 1e9, '__proto__', 'constructor'];
  for (const message of [MOUSE, WHEEL, TOUCH]) {
    for (const name of Object.keys(message)) {
      assert.is(read({ ...message, [name]: undefined }), undefined, `${message.type} ${name}`);
      for (const value of strange) {
        if (name === 'points' && Array.isArray(value)) continue; // no finger is left
        assert.is(read({ ...message, [name]: value }), undefined, `${name} ${String(value)}`);
      }
    }
  }
  for (const name of ['event', 'keyCode', 'modifiers', 'location']) {
    for (const value of strange) assert.is(read({ ...KEY, [name]: value }), undefined, name);
  }
  const wrong = [
    ...[
      { ...KEY, key: 'x'.repeat(65) },
      { ...KEY, code: 1 },
      { ...KEY, text: null },
    ],
    ...[
      { ...MOUSE, clicks: 1.5 },
      { ...MOUSE, modifiers: 16 },
      { ...MOUSE, buttons: '1' },
    ],
    { ...TOUCH, points: [{ x: 1, y: 2 }] },
    { ...TOUCH, points: Array.from({ length: 17 }, () => ({ x: 1, y: 2, id: 0 })) },
    { type: 'ack', more: Array.from({ length: 200 }, () => 0) },
    ...[{ type: 'history', by: 2 }, { type: 'tab' }, { type: 'text' }, { type: 'navigate' }],
    ...[
      { type: 'dialog', accept: 1, text: '' },
      { type: 'dialog', accept: true },
    ],
    { type: 'text', text: 'x'.repeat((256 << 10) + 1) },
    ...[{}, [], null, 1, 'ack', { type: 'toString' }],
  ];
  for (const message of wrong) assert.is(read(message), undefined, JSON.stringify(message));
  for (const text of ['', '{', 'ack', '{"type":"mouse","x":1e999}']) {
    assert.is(readMessage(Buffer.from(text)), undefined, text);
  }
});

test.run();
