/**
 * The shared worker that holds one stream of changes for all tabs of the console: a browser opens
 * six connections to a host, and a stream in each of six tabs would block all requests. Its name is
 * the path of the stream, so that an operator login has one for each project that a tab shows.
 */
import { openChanges } from './stream.ts';

const ports = new Set<MessagePort>();
let last: unknown;

addEventListener('connect', (event) => {
  const port = (event as MessageEvent).ports[0];
  if (port === undefined) return;
  ports.add(port);
  port.onmessage = ({ data }) => {
    if (data === 'close') {
      ports.delete(port);
      if (ports.size === 0) stream.stop();
      return;
    }
    ports.add(port);
    if (data === 'open') stream.open();
    else stream.stop();
  };
  if (last !== undefined) port.postMessage(last);
});

const stream = openChanges((self as unknown as { name: string }).name, (message) => {
  if ('isLive' in message) last = message;
  for (const port of ports) port.postMessage(message);
});
