/** Handlers for tests: in this process, through bytes, and not implemented. */
import { Fault } from '../../proto/rpc/errors.ts';
import type { AnyHandler, Definition, Handlers } from '../../proto/rpc/local.ts';
import { type AllHandlers, SERVICES } from '../../proto/rpc/services.ts';

/** Encodes and decodes every message of the handlers, as between processes. */
export function overBytes<D extends Definition>(definition: D, handlers: Handlers<D>): Handlers<D> {
  const wired = Object.entries(definition).map(([name, method]) => {
    const handler = handlers[name] as AnyHandler;
    const received = (request: unknown) =>
      method.requestStream ? request : method.requestDeserialize(method.requestSerialize(request));
    const answered = (answer: unknown) =>
      method.responseDeserialize(method.responseSerialize(answer));
    const call: AnyHandler = async (request, call) =>
      answered(await handler(received(request), call));
    const stream: AnyHandler = async function* (request, call) {
      for await (const part of handler(request, call) as AsyncIterable<unknown>) {
        yield answered(part);
      }
    };
    return [name, method.responseStream ? stream : call];
  });
  return Object.fromEntries(wired) as Handlers<D>;
}

export function allOverBytes(handlers: AllHandlers): AllHandlers {
  const wired = Object.entries(SERVICES).map(([name, definition]) => [
    name,
    overBytes(definition as Definition, handlers[name as keyof AllHandlers] as never),
  ]);
  return Object.fromEntries(wired) as AllHandlers;
}

/** The handler of an RPC that the test does not call. */
export async function notBuilt(): Promise<never> {
  throw new Fault('NOT_IMPLEMENTED', 'This operation is not available yet.');
}
