/**
 * A webhook's name is resolved once before core registers it: one blocked answer refuses it with
 * the words that core has for a blocked URL. A name that does not resolve passes, since DNS may
 * come later; each attempt asks again. Core does no network, so it is asked here.
 * proto/spec/webhooks.md 8.
 */
import { literalAddress } from '../../proto/network/webhook-endpoint.ts';
import { Fault } from '../../proto/rpc/errors.ts';
import { type CallOptions, DEADLINE_DEFAULT_MS } from '../../proto/rpc/local.ts';
import type { Clients } from '../../proto/rpc/services.ts';
import { BlockedAddress, type Guard } from './ssrf-guard.ts';

/** The same clients; a webhook's endpoint is vetted on the way to core. */
export function vetted(clients: Clients, guard: Guard): Clients {
  const { webhooks, projects } = clients;

  async function vet(endpoint: string, options: CallOptions = {}): Promise<CallOptions> {
    const name = nameOf(endpoint, guard);
    if (name === undefined) return options;
    const startedAt = performance.now();
    // The key first: nobody else may have names resolved by us.
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

/** What is to be resolved; undefined where the text alone decides, which is core's to say. */
function nameOf(endpoint: string, guard: Guard): string | undefined {
  try {
    guard.checkUrl(endpoint);
  } catch {
    return undefined; // core refuses it
  }
  const { hostname } = new URL(endpoint);
  return literalAddress(hostname) === undefined ? hostname : undefined;
}

/** What does not resolve is not blocked. */
function isBlocked(name: string, guard: Guard): Promise<boolean> {
  return new Promise((resolve) => {
    guard.lookup(name, { all: true }, (error) => resolve(error instanceof BlockedAddress));
  });
}
