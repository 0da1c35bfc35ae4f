/** A bare CDP client for benchmarks: one page, one WebSocket, no driver. */
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { must } from '../../../proto/common/must.ts';

const RESULT_MAX_BYTES = 256 << 20;

export type Client = AsyncDisposable & {
  evaluate(expression: string): Promise<void>;
  /** `count` calls, `window` of them in parallel. */
  evaluateMany(expression: string, count: number, window: number): Promise<void>;
  /** Resolves at the page's load event. */
  load(url: string): Promise<void>;
};

export async function openClient(url: string): Promise<Client> {
  const socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: RESULT_MAX_BYTES });
  await once(socket, 'open');
  const waiting = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
  let onLoad = (): void => undefined;
  let lastId = 0;
  socket.on('message', (bytes: Buffer) => {
    if (bytes.length > 1_000) {
      // the client's own work on a large response is not measured
      const id = Number(/^\{"id":(\d+)/.exec(bytes.toString('latin1', 0, 30))?.[1]);
      waiting.get(id)?.resolve({});
      waiting.delete(id);
      return;
    }
    const message = JSON.parse(bytes.toString());
    if (message.method === 'Page.loadEventFired') onLoad();
    if (message.error) waiting.get(message.id)?.reject(new Error(message.error.message));
    else waiting.get(message.id)?.resolve(message.result);
    waiting.delete(message.id);
  });
  const call = (method: string, params: object, sessionId?: string) => {
    const id = ++lastId;
    const waiter = Promise.withResolvers<Record<string, unknown>>();
    waiting.set(id, waiter);
    socket.send(JSON.stringify({ id, method, params, sessionId }));
    return waiter.promise;
  };
  const { targetId } = await call('Target.createTarget', { url: 'about:blank' });
  const attached = await call('Target.attachToTarget', { targetId, flatten: true });
  const sessionId = String(attached['sessionId']);
  for (const domain of ['Page', 'Runtime', 'Network']) {
    await call(`${domain}.enable`, {}, sessionId);
  }
  const evaluate = async (expression: string): Promise<void> => {
    const { result } = await call(
      'Runtime.evaluate',
      { expression, returnByValue: true },
      sessionId,
    );
    void result;
  };
  return {
    evaluate,
    async evaluateMany(expression, count, window) {
      let left = count;
      const lane = async (): Promise<void> => {
        while (left-- > 0) await evaluate(expression);
      };
      await Promise.all(Array.from({ length: window }, lane));
    },
    async load(address) {
      const { promise, resolve } = Promise.withResolvers<void>();
      onLoad = resolve;
      await call('Page.navigate', { url: address }, sessionId);
      await promise;
    },
    async [Symbol.asyncDispose]() {
      const closed = once(socket, 'close');
      socket.close();
      await closed;
      must(waiting.size === 0 || undefined, 'every command answered');
    },
  };
}
