/**
 * A size limit on requests of a service, checked before they are decoded: a message of 13 MiB with
 * many members takes seconds to decode.
 */
import { Fault } from './errors.ts';
import type { AnyHandler, AnyMethod, Definition, Handlers } from './local.ts';

/** Placeholder of a request that was not decoded. */
const TOO_LARGE = Symbol('too large');

/** Wraps a service: larger requests are answered with BODY_TOO_LARGE. */
export function limited<D extends Definition>(
  definition: D,
  handlers: Handlers<D>,
  maxBytes: number,
): { definition: D; handlers: Handlers<D> } {
  const methods = Object.entries(definition).map(([name, method]: [string, AnyMethod]) => {
    const { requestDeserialize: decode } = method;
    const bounded = (bytes: Buffer) => (bytes.length > maxBytes ? TOO_LARGE : decode(bytes));
    return [name, { ...method, requestDeserialize: bounded }];
  });
  const bounded = Object.entries(handlers).map(([name, handler]: [string, AnyHandler]) => {
    const handle: AnyHandler = (request, call) => {
      if (request !== TOO_LARGE) return handler(request, call);
      throw new Fault('BODY_TOO_LARGE', `The message is larger than ${maxBytes} bytes.`);
    };
    return [name, handle];
  });
  return {
    definition: Object.fromEntries(methods) as D,
    handlers: Object.fromEntries(bounded) as Handlers<D>,
  };
}
