/** grpc.health.v1: SERVING from the moment the socket listens until the drain. */

import type { HealthService } from '../../proto/gen/grpc/health/v1/health.pb.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import type { Handlers } from '../../proto/rpc/local.ts';
import { SERVICES } from '../../proto/rpc/services.ts';

type Status = 'SERVING' | 'NOT_SERVING';

export function healthHandlers(): {
  handlers: Handlers<typeof HealthService>;
  drain(): void;
} {
  const draining = new AbortController();
  const status = (): Status => (draining.signal.aborted ? 'NOT_SERVING' : 'SERVING');

  return {
    handlers: {
      async check({ service }) {
        if (!isKnown(service)) {
          throw new Fault('RESOURCE_NOT_FOUND', 'Service not found.', {
            type: 'Service',
            id: service,
          });
        }
        return { status: status() };
      },
      async *watch({ service }, { signal }) {
        if (!isKnown(service)) {
          yield { status: 'SERVICE_UNKNOWN' as const };
          await aborted(AbortSignal.any([signal, draining.signal]));
          return;
        }
        yield { status: status() };
        await aborted(AbortSignal.any([signal, draining.signal]));
        if (!signal.aborted) yield { status: 'NOT_SERVING' as const };
      },
    },
    drain: () => draining.abort(),
  };
}

/** The empty name means the whole server. */
function isKnown(service: string): boolean {
  if (service === '') return true;
  const prefix = `/${service}/`;
  return Object.values(SERVICES).some((definition) =>
    Object.values(definition).some((method) => method.path.startsWith(prefix)),
  );
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
