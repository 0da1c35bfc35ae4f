/** The REST interface for tools: the same operations, checks and links, without a connection. */
import { must } from '../../../proto/common/must.ts';
import { checkBody } from '../../rest/json-validation.ts';
import type { Operation } from '../../rest/operations.ts';
import { type Sending, sender, type TranscodeDeps } from '../../rest/transcode.ts';
import type { Parts, Service } from './tool.ts';

type Deps = TranscodeDeps & { operations: readonly Operation[] };

/** For each request, with the key of its caller. */
export function openServices({ operations, ...deps }: Deps): (sending: Sending) => Service {
  const known = new Map(
    operations.map((operation) => {
      const send = sender(operation, deps);
      return [`${operation.verb.toUpperCase()} ${operation.template}`, { operation, send }];
    }),
  );
  return (sending) => ({
    async call<T>(name: string, { path = {}, query = {}, body = {} }: Parts = {}): Promise<T> {
      const { operation, send } = must(known.get(name), name);
      const { method, closed } = operation;
      const ignored: string[] = [];
      const checked = operation.hasBody ? checkBody(method.input, body, closed, ignored) : {};
      const answer = await send({ body: checked, given: query, path, ignored }, sending);
      return answer as T; // as the contract has it: an answer of core
    },
    link: (path) => (deps.publicUrl ?? sending.baseUrl) + path,
  });
}
