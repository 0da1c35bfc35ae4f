/** A screencast that does not start, over a pipe without a Chrome. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Pipe } from '../../../../runner/browser/cdp/pipe.ts';
import { resizes } from '../../../../runner/browser/cdp/resizes.ts';
import { openScreencasts } from '../../../../runner/sessions/live-view/screencast.ts';
import { errorOf } from '../../../support/fault.ts';

const test = suite('runner/sessions/live-view/screencast');

/** A Chrome that attaches sessions and refuses each of their commands. */
function refusing(): Pipe {
  let answer: (raw: Buffer) => void = () => undefined;
  let lastId = 0;
  const pipe: Partial<Pipe> = {
    newId: () => ++lastId,
    onUnknownSession: () => () => undefined,
    release: () => undefined,
    call: async () => ({ sessionId: 'session' }),
    claim: (_, listener) => {
      answer = listener;
    },
    write(message) {
      const { id } = JSON.parse(message.toString()) as { id: number };
      queueMicrotask(() => answer(Buffer.from(JSON.stringify({ id, error: { message: 'no' } }))));
      return true;
    },
  };
  return pipe as Pipe;
}

test('a screencast that does not start listens to no resizes', async () => {
  const pipe = refusing();
  const sizes = resizes(pipe);
  const on = sizes.on.bind(sizes);
  let listeners = 0;
  sizes.on = (page, listener) => {
    listeners += 1;
    const off = on(page, listener);
    return () => {
      listeners -= 1;
      off();
    };
  };
  const error = await errorOf(openScreencasts(pipe).acquire('target'));
  assert.match(String(error), /no/);
  assert.is(listeners, 0);
});

test.run();
