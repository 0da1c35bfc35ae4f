/** grpc.health.v1: SERVING from the moment the socket listens until the drain. */
import { once } from 'node:events';
import type { HealthService } from '../../proto/gen/grpc/health/v1/health.pb.ts';
import { notFound } from '../../proto/rpc/errors.ts';
import type { Handlers } from '../../proto/rpc/local.ts';
import { SERVICES } from '../../proto/rpc/services.ts';

export function healthHandlers(): {
  handlers: Handlers<typeof HealthService>;
  drain(): void;
} {
  const draining = new AbortController();
  const status = () => (draining.signal.aborted ? 'NOT_SERVING' : 'SERVING');

  return {
    handlers: {
      async check({ service }) {
        if (!isKnown(service)) throw notFound('Service', service);
        return { status: status() };
      },
      async *watch({ service }, { signal }) {
        const known = isKnown(service);
        yield { status: known ? status() : 'SERVICE_UNKNOWN' };
        await aborted(AbortSignal.any([signal, draining.signal]));
        if (known && !signal.aborted) yield { status: 'NOT_SERVING' };
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

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
