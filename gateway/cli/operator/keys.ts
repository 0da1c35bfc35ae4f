/** `tabern keys`: creates, lists and revokes API keys. */

import type { Env } from '../../../proto/common/env.ts';
import { columns } from '../../../proto/common/text-table.ts';
import type { ApiKey } from '../../../proto/gen/tabern/v1/operators.pb.ts';
import type { Given } from '../command.ts';
import { withCore } from './core-client.ts';
import { print, say } from './terminal.ts';

/** Prints only the key on stdout, for scripts. */
export async function createKey(project: string, given: Given, env: Env): Promise<number> {
  const name = typeof given['name'] === 'string' ? given['name'] : '';
  const { key, apiKey } = await withCore(given, env, ({ operators, call }) =>
    operators.createApiKey({ project, name }, call),
  );
  if (given['json'] === true) {
    print(JSON.stringify({ key, ...shown(apiKey) }));
    return 0;
  }
  say(`key ${apiKey?.id} of project ${project}; it cannot be shown again:`);
  print(key);
  return 0;
}

export async function listKeys(given: Given, env: Env): Promise<number> {
  const project = typeof given['project'] === 'string' ? given['project'] : '';
  const { apiKeys } = await withCore(given, env, ({ operators, call }) =>
    operators.listApiKeys({ project }, call),
  );
  if (given['json'] === true) {
    print(JSON.stringify(apiKeys.map(shown)));
    return 0;
  }
  const rows = apiKeys.map((one) => [
    ...[one.id, one.name || '-', one.projectId, minute(one.createdAt)],
    ...[minute(one.lastUsedAt), one.revokedAt ? `revoked ${minute(one.revokedAt)}` : 'good'],
  ]);
  print(columns(['ID', 'NAME', 'PROJECT', 'CREATED', 'LAST USED', 'STATE'], rows));
  return 0;
}

/** Accepts a whole key instead of its public part, so that a leaked key can be pasted. */
export async function revokeKey(text: string, given: Given, env: Env): Promise<number> {
  const id = /^svc_([a-z0-9]{8})_/.exec(text)?.[1] ?? text;
  const { apiKey } = await withCore(given, env, ({ operators, call }) =>
    operators.revokeApiKey({ id }, call),
  );
  if (given['json'] === true) print(JSON.stringify(shown(apiKey)));
  else say(`key ${id} is revoked; its connections are closed`);
  return 0;
}

function shown(key: ApiKey | undefined) {
  const { id, projectId, name, createdAt, lastUsedAt, revokedAt } = key ?? {};
  return { id, projectId, name, createdAt, lastUsedAt, revokedAt };
}

/** 2026-11-21 12:05, UTC. */
function minute(time: Date | undefined): string {
  return time?.toISOString().slice(0, 16).replace('T', ' ') ?? '-';
}
