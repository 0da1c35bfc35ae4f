/** A gateway before a whole core, and contexts to upload to. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { gatewayConfig } from '../../../../gateway/config.ts';
import { startGateway } from '../../../../gateway/main.ts';
import { openLog } from '../../../../proto/common/log.ts';
import { must } from '../../../../proto/common/must.ts';
import { Channel } from '../../../../proto/rpc/remote.ts';
import { remoteClients } from '../../../../proto/rpc/services.ts';
import { boot, KEY } from '../../../core/boot.ts';

export type Created = { id: string; publicKey: string; uploadUrl: string };

/** A gateway before a whole core, in its process or over gRPC, and one context. */
export async function openUploads(
  env: Record<string, string> = {},
  isRemote = false,
  coreEnv: Record<string, string> = {},
) {
  const app = await boot(coreEnv);
  const channel = new Channel(app.core.address, credentials.createInsecure());
  const gateway = await startGateway(gatewayConfig({ TABERN_PORT: '0', ...env }), {
    clients: isRemote ? remoteClients(channel) : app.clients,
    gatewayToken: String(app.asGateway.metadata?.['authorization']).slice('Bearer '.length),
    log: openLog({ role: 'test', level: 'silent' }),
  });
  const call = async <T>(
    method: string,
    path: string,
    key = KEY,
  ): Promise<{ status: number; json: T }> => {
    const answer = await fetch(gateway.url + path, { method, headers: { 'x-svc-api-key': key } });
    return { status: answer.status, json: (await answer.json().catch(() => ({}))) as T };
  };
  const create = async () => (await call<Created>('POST', '/v1/contexts')).json;
  return {
    ...app,
    gateway,
    call,
    create,
    context: await create(),
    /** Another key of the same project, and its end. */
    async otherKey() {
      const wanted = { project: 'default', name: 'other' };
      const { operators } = app.clients;
      const { key, apiKey } = await operators.createApiKey(wanted, app.asOperator);
      const { id } = must(apiKey, 'a key');
      return { key, revoke: () => operators.revokeApiKey({ id }, app.asOperator) };
    },
    files: () => readdirSync(join(app.dir, 'blobs')),
    /** The stored bytes, or the status of the refusal. */
    async download(id: string): Promise<Buffer | number> {
      const { status, json } = await call<{ downloadUrl: string }>(
        'GET',
        `/v1/contexts/${id}/download`,
      );
      if (status !== 200) return status;
      const answer = await fetch(json.downloadUrl);
      return answer.ok ? Buffer.from(await answer.arrayBuffer()) : answer.status;
    },
    async [Symbol.asyncDispose]() {
      await gateway.close();
      channel[Symbol.dispose]();
      await app[Symbol.asyncDispose]();
    },
  };
}

/** PUT without a key: the URL is the capability. */
export async function put(url: string, body: Buffer | ReadableStream, method = 'PUT') {
  const init = { method, body, duplex: 'half' } as RequestInit;
  const answer = await fetch(url, init);
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
}
