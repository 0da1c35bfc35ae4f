/** Requests to the service, or the runner, that works on a data directory, over its socket. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { drainSocketOf } from '../../../proto/drain/socket.ts';
import { EXIT, Exit } from '../../process/exit-codes.ts';

/** Throws an Exit with advice when no process can be reached. */
export async function post(dataDir: string, path: string, body = ''): Promise<IncomingMessage> {
  const socketPath = drainSocketOf(dataDir);
  const sent = request({ socketPath, method: 'POST', path }).end(body);
  try {
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return response;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why =
      code === 'EACCES'
        ? `cannot open ${socketPath}: run this as the user of the service`
        : `no service and no runner works on ${dataDir}: set --data to the directory of one`;
    throw new Exit(EXIT.port, why, cause);
  }
}
