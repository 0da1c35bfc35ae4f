/** `tabern keys`: creates, lists and revokes API keys. */
import type { Env } from '../../../proto/common/env.ts';
import { columns } from '../../../proto/common/text-table.ts';
import type { ApiKey } from '../../../proto/gen/tabern/v1/operators.pb.ts';
import type { Given } from '../command.ts';
import { withCore } from './core-client.ts';
import { answer, note, print } from './terminal.ts';

/** Prints only the key on stdout, for scripts. */
export async function createKey(project: string, given: Given, env: Env): Promise<number> {
  const name = typeof given['name'] === 'string' ? given['name'] : '';
  const { key, apiKey } = await withCore(given, env, ({ operators, call }) =>
    operators.createApiKey({ project, name }, call),
  );
  return answer(given, { key, ...shown(apiKey) }, () => {
    note(`key ${apiKey?.id} of project ${project}; it cannot be shown again:`);
    print(key);
  });
}

export async function listKeys(_: string, given: Given, env: Env): Promise<number> {
  const project = typeof given['project'] === 'string' ? given['project'] : '';
  const { apiKeys } = await withCore(given, env, ({ operators, call }) =>
    operators.listApiKeys({ project }, call),
  );
  return answer(given, apiKeys.map(shown), () => {
    const rows = apiKeys.map((one) => [
      ...[one.id, one.name || '-', one.projectId, minute(one.createdAt)],
      ...[minute(one.lastUsedAt), one.revokedAt ? `revoked ${minute(one.revokedAt)}` : 'good'],
    ]);
    print(columns(['ID', 'NAME', 'PROJECT', 'CREATED', 'LAST USED', 'STATE'], rows));
  });
}

/** Accepts a whole key instead of its public part, so that a leaked key can be pasted. */
export async function revokeKey(text: string, given: Given, env: Env): Promise<number> {
  const id = /^svc_([a-z0-9]{8})_/.exec(text)?.[1] ?? text;
  const { apiKey } = await withCore(given, env, ({ operators, call }) =>
    operators.revokeApiKey({ id }, call),
  );
  return answer(given, shown(apiKey), () => {
    note(`key ${id} is revoked; its connections are closed`);
  });
}

function shown(key: ApiKey | undefined) {
  const { id, projectId, name, createdAt, lastUsedAt, revokedAt } = key ?? {};
  return { id, projectId, name, createdAt, lastUsedAt, revokedAt };
}

/** 2026-11-21 12:05, UTC. */
function minute(time: Date | undefined): string {
  return time?.toISOString().slice(0, 16).replace('T', ' ') ?? '-';
}
