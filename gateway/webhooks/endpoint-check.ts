/**
 * Resolves the host of an endpoint before core, which has no network access, registers the webhook:
 * one blocked address refuses it. A name that does not resolve is accepted, since its DNS records
 * may follow; each attempt resolves it again. proto/spec/webhooks.md 8.
 */
import { literalAddress } from '../../proto/network/webhook-endpoint.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { type CallOptions, DEADLINE_DEFAULT_MS } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { BlockedAddress, type Guard } from './ssrf-guard.ts';

/** Wraps the clients: checks a webhook's endpoint before the call to core. */
export function vetted(clients: Clients, guard: Guard): Clients {
  const { webhooks, projects } = clients;

  async function vet(endpoint: string, options: CallOptions = {}): Promise<CallOptions> {
    const name = nameOf(endpoint, guard);
    if (name === undefined) return options;
    const startedAt = performance.now();
    // Checks the API key first: no one else may make the service resolve names.
    await projects.listProjects({}, options);
    if (await isBlocked(name, guard)) {
      const message = '`endpoint` must be a public https URL: it names a host that is not public.';
      throw new Fault('ENDPOINT_NOT_ALLOWED', message, { field: 'endpoint' });
    }
    const leftMs = (options.timeoutMs ?? DEADLINE_DEFAULT_MS) - (performance.now() - startedAt);
    return { ...options, timeoutMs: Math.max(1, leftMs) };
  }

  return {
    ...clients,
    webhooks: {
      ...webhooks,
      async createWebhook(request, options) {
        return webhooks.createWebhook(request, await vet(request.endpoint, options));
      },
      async updateWebhook(request, options) {
        const { endpoint } = request;
        const left = endpoint === undefined ? options : await vet(endpoint, options);
        return webhooks.updateWebhook(request, left);
      },
    },
  };
}

/** The host to resolve; undefined for literal addresses, which core checks. */
function nameOf(endpoint: string, guard: Guard): string | undefined {
  try {
    guard.checkUrl(endpoint);
  } catch {
    return undefined; // core refuses it
  }
  const { hostname } = new URL(endpoint);
  return literalAddress(hostname) === undefined ? hostname : undefined;
}

/** A name that does not resolve is not blocked. */
function isBlocked(name: string, guard: Guard): Promise<boolean> {
  return new Promise((resolve) => {
    guard.lookup(name, { all: true }, (error) => resolve(error instanceof BlockedAddress));
  });
}
