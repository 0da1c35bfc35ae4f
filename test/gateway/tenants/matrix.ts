/** Two projects before one gateway, and requests that a row describes. */
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { KEY } from '../../core/boot.ts';
import { openUploads } from '../routes/files/contexts.ts';
import { type Answer, ask } from '../sessions/runner.ts';
import type { Row } from './rows.ts';
import {
  certificateForm,
  extensionForm,
  formOf,
  type Kind,
  makeTenant,
  type Objects,
} from './tenant.ts';

const KINDS: readonly Kind[] = [
  ...(['project', 'key', 'context', 'session', 'download', 'extension', 'build'] as const),
  ...(['function', 'version', 'invocation', 'webhook', 'delivery', 'label', 'handoff'] as const),
  ...(['schedule', 'certificate', 'secret'] as const),
];
/** The kinds with a DELETE operation, and its path. */
const DELETABLE = [
  ['context', 'contexts'],
  ['webhook', 'webhooks'],
  ['schedule', 'functions/schedules'],
  ['extension', 'extensions'],
  ['label', 'labels'],
  ['certificate', 'certificates'],
  ['secret', 'secrets'],
  ['download', 'downloads'],
] as const;

export const MISSING = objectsOf('01a1fce4-ed84-7600-895f-0cf6ab39edc7');
export const MALFORMED = objectsOf('no-such-form');

/** The values of the header: one key, or several in sequence. */
export type Keys = string | readonly string[];

/** `await using matrix = await openMatrix()` */
export async function openMatrix() {
  const app = await openUploads();
  const { clients, asOperator } = app;
  const wanted = { name: 'other', limits: {} };
  const { project } = await clients.operators.createProject(wanted, asOperator);
  const newKey = () =>
    clients.operators.createApiKey(
      { project: must(project?.project, 'a project').id, name: '' },
      asOperator,
    );
  const own = await makeTenant(app, KEY);
  const other = await makeTenant(app, (await newKey()).key);
  const { key: revoked, apiKey } = await newKey();
  await clients.operators.revokeApiKey({ id: must(apiKey, 'a key').id }, asOperator);
  const forms = {
    file: formOf('file', Buffer.from('x')),
    extension: await extensionForm(),
    certificate: await certificateForm(),
    archive: formOf('archive', Buffer.from('x'), { metadata: '{"entrypoint":"./index.ts"}' }),
  };

  async function send(route: string, row: Row, objects: Objects, keys: Keys): Promise<Answer> {
    const [method = '', template = ''] = route.split(' ');
    const form = row.form && forms[row.form];
    const json = row.body && filled(JSON.stringify(row.body), objects);
    const headers = {
      ...form?.headers,
      ...(json && { 'content-type': 'application/json' }),
      'x-svc-api-key': typeof keys === 'string' ? keys : [...keys],
    };
    const body = form?.body ?? json;
    const path = addressOf(template, row, objects);
    return await ask(app.gateway.url, method, path, { headers, ...(body && { body }) });
  }

  async function deleted(): Promise<Objects> {
    const { objects } = await makeTenant(app, KEY);
    for (const [kind, path] of DELETABLE) {
      const address = `/v1/${path}/${objects[kind]}`;
      assert.is((await ask(app.gateway.url, 'DELETE', address, keyed(KEY))).status, 204, address);
    }
    return objects;
  }

  return { ...app, own, other, revoked, send, deleted };
}

/** The kinds that a row names, in its path, its query or its body. */
export function kindsOf({ path = {}, query = {}, body = {} }: Row): Kind[] {
  const text = JSON.stringify(body);
  const inBody = KINDS.filter((kind) => text.includes(`"$${kind}"`));
  const inPath = Object.values(path).filter((one) => typeof one === 'string');
  return [...new Set([...inPath, ...Object.values(query), ...inBody])];
}

function keyed(key: string) {
  return { headers: { 'x-svc-api-key': key } };
}

function objectsOf(id: string): Objects {
  return Object.fromEntries(KINDS.map((kind) => [kind, id])) as Objects;
}

function addressOf(template: string, { path = {}, query = {} }: Row, objects: Objects): string {
  const address = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const named = must(path[name], `the row's ${name} of ${template}`);
    return typeof named === 'string' ? objects[named] : named.text;
  });
  const asked = Object.entries(query).map(([name, kind]) => [name, objects[kind]] as const);
  return asked.length === 0
    ? address
    : `${address}?${new URLSearchParams(Object.fromEntries(asked))}`;
}

function filled(body: string, objects: Objects): string {
  return body.replace(/"\$(\w+)"/g, (_, kind: Kind) => JSON.stringify(objects[kind]));
}
