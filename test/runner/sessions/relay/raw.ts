/** A client that sends any message. */
import { WebSocket } from 'ws';
import { until } from '../../browser/lab.ts';

export type Raw = {
  socket: WebSocket;
  said: string[];
  closed: Promise<number>;
  /** The reason of its close. */
  why(): string;
  /** A session on the first page. */
  attach(): Promise<string>;
  call(method: string, params?: object, sessionId?: string): Promise<Record<string, unknown>>;
};

/** Connected. */
export async function openRaw(url: string): Promise<Raw> {
  const socket = new WebSocket(url);
  const said: string[] = [];
  const { promise: closed, resolve: close } = Promise.withResolvers<number>();
  const { promise: opened, resolve, reject } = Promise.withResolvers<void>();
  let why = '';
  socket
    .on('open', resolve)
    .on('error', reject)
    .on('close', (code, reason) => {
      why = reason.toString();
      close(code);
    });
  socket.on('message', (bytes) => said.push(bytes.toString()));
  await opened;
  let last = 0;
  const call: Raw['call'] = async (method, params = {}, sessionId) => {
    last += 1;
    const id = last;
    socket.send(JSON.stringify({ id, method, params, sessionId }));
    await until(() => said.some((text) => text.startsWith(`{"id":${id},`)), method);
    const text = said.find((one) => one.startsWith(`{"id":${id},`)) ?? '{}';
    const { result, error } = JSON.parse(text);
    if (error) throw new Error(error.message);
    return result;
  };
  return {
    socket,
    said,
    closed,
    call,
    why: () => why,
    async attach() {
      const { targetInfos } = await call('Target.getTargets');
      const [page] = targetInfos as { targetId: string }[];
      const params = { targetId: page?.targetId, flatten: true };
      const { sessionId } = await call('Target.attachToTarget', params);
      return String(sessionId);
    },
  };
}
