/** A project with one object of each kind, created by its users and its runner. */
import { must } from '../../../proto/common/must.ts';
import type { CallOptions } from '../../../proto/rpc/local.ts';
import { type Booted, blobParts, HOLDER } from '../../core/boot.ts';
import { sealedFor } from '../../support/clients/seal.ts';
import { manifest, zipOf } from '../../support/runner/zips.ts';
import { authority } from '../../support/servers/certificates.ts';
import { ask } from '../sessions/runner.ts';

/** Each kind of object that a path or a body may name, by its id. */
export type Objects = Record<Kind, string>;
export type Kind =
  | 'project'
  | 'key'
  | 'context'
  | 'session'
  | 'handoff'
  | 'download'
  | 'extension'
  | 'label'
  | 'certificate'
  | 'secret'
  | 'build'
  | 'function'
  | 'version'
  | 'invocation'
  | 'schedule'
  | 'webhook'
  | 'delivery';

export type Tenant = { key: string; objects: Objects };
export type Form = { headers: Record<string, string>; body: Buffer };

const NOTHING = {
  browserSettings: undefined,
  proxies: undefined,
  userMetadata: undefined,
  proxySettings: undefined,
  labels: [],
};

/** A form with these fields, the last of which is a file. */
export function formOf(name: string, bytes: Buffer, fields: Record<string, string> = {}): Form {
  const part = (head: string) => `--b\r\ncontent-disposition: form-data; ${head}\r\n\r\n`;
  const before = Object.entries(fields).map(([field, value]) => {
    return `${part(`name="${field}"`)}${value}\r\n`;
  });
  const head = `${before.join('')}${part(`name="${name}"; filename="x.zip"`)}`;
  const body = Buffer.concat([Buffer.from(head), bytes, Buffer.from('\r\n--b--\r\n')]);
  return { headers: { 'content-type': 'multipart/form-data; boundary=b' }, body };
}

export async function extensionForm(): Promise<Form> {
  return formOf('file', await zipOf({ 'manifest.json': manifest() }));
}

export async function certificateForm(): Promise<Form> {
  return formOf('file', Buffer.from((await authority()).cert));
}

type App = Booted & { gateway: { url: string } };

export async function makeTenant(app: App, key: string): Promise<Tenant> {
  const as = { metadata: { 'x-svc-api-key': key } };
  const { clients } = app;
  const [project] = (await clients.projects.listProjects({}, as)).projects;
  const post = async (path: string, form: Form | { headers: object; body: string }) => {
    const headers = { ...form.headers, 'x-svc-api-key': key };
    const { json } = await ask(app.gateway.url, 'POST', path, { headers, body: form.body });
    return String(Reflect.get(json as object, 'id'));
  };
  const empty = { headers: { 'content-type': 'application/json' }, body: '{}' };
  const context = await post('/v1/contexts', empty);
  const extension = await post('/v1/extensions', await extensionForm());
  const certificate = await post('/v1/certificates', await certificateForm());
  const named = JSON.stringify({ name: crypto.randomUUID() });
  const label = await post('/v1/labels', { headers: empty.headers, body: named });
  const secret = await post('/v1/secrets', await sealedSecret(app, as));
  const made = (await clients.consoleSettings.createKey({ name: '' }, as)).key;
  const published = await publish(app, as);
  const ran = await run(app, as, published.function);
  const rules = { functionId: published.function, cron: '0 9 * * *', params: {} };
  const { schedule } = await clients.schedules.createSchedule(rules, as);
  const objects = {
    project: must(project, 'a project').id,
    key: must(made, 'a key').id,
    context,
    extension,
    label,
    schedule: must(schedule, 'a schedule').id,
    certificate,
    secret,
  };
  return { key, objects: { ...objects, ...published, ...ran, ...(await open(app, as)) } };
}

/** The body that creates a secret. */
async function sealedSecret({ clients }: App, as: CallOptions) {
  const sealed = sealedFor(await clients.secrets.getSecretsKeypair({}, as), 'value');
  // a project may have two tenants
  const secretKey = `S_${crypto.randomUUID().replaceAll('-', '_')}`;
  const body = JSON.stringify({ ...sealed, secretKey });
  return { headers: { 'content-type': 'application/json' }, body };
}

/** A published function. */
async function publish(app: App, as: CallOptions) {
  const { clients, asRunner } = app;
  const archive = blobParts({ kind: 'BUILD_ARCHIVE' }, 'archive');
  const { blobId: archiveBlobId } = await clients.blobs.writeBlob(archive, as);
  const wanted = { entrypoint: './index.ts', archiveBlobId };
  const build = must((await clients.functions.createBuild(wanted, as)).build, 'a build').id;
  const { leaseId } = must((await app.lease('BUILD'))[0], 'a build to lease');
  const bundle = blobParts({ kind: 'BUNDLE', leaseId }, 'bundle');
  const { blobId: bundleBlobId } = await clients.blobs.writeBlob(bundle, asRunner);
  const manifests = [{ name: 'f', sessionConfigJson: '', paramsSchemaJson: '' }];
  const outcome = { $case: 'success', value: { bundleBlobId, manifests } } as const;
  await clients.runners.completeBuild({ leaseId, outcome }, asRunner);
  const built = (await clients.functions.getBuild({ buildId: build }, as)).build;
  const made = must(built?.builtFunctions[0], 'a function');
  return { build, function: made.id, version: must(made.createdVersion, 'a version').id };
}

/** A running invocation, and a webhook that received an event of another one. */
async function run(app: App, as: CallOptions, functionId: string) {
  const { clients, asRunner } = app;
  const endpoint = `https://93.184.216.34/${crypto.randomUUID()}`;
  const eventTypes = ['functions.invocations.completed'];
  const { webhook } = await clients.webhooks.createWebhook({ endpoint, eventTypes }, as);
  const { id: webhookId } = must(webhook, 'a webhook');
  const invoke = async () => {
    const wanted = { functionId, params: {}, sessionCreateParams: undefined };
    const { invocation } = await clients.invocations.invokeFunction(wanted, as);
    const { leaseId } = must((await app.lease('INVOCATION'))[0], 'an invocation to lease');
    return { id: must(invocation, 'an invocation').id, leaseId };
  };
  const { leaseId } = await invoke();
  const end = { leaseId, outcome: undefined, sessionStartMs: 0, steps: [] };
  await clients.runners.completeInvocation(end, asRunner);
  const { data } = await clients.webhooks.listDeliveries({ id: webhookId }, as);
  const delivery = must(data[0], 'a delivery').id;
  return { webhook: webhookId, delivery, invocation: (await invoke()).id };
}

/** A session that runs and waits for a person, with a download. */
async function open(app: App, as: CallOptions) {
  const { clients, asRunner } = app;
  const creating = clients.sessions.createSession(NOTHING, as);
  const { leaseId } = must((await app.lease('SESSION', 25_000))[0], 'a session to lease');
  const startMs = app.clock.now();
  await clients.runners.startSession({ leaseId, startMs }, asRunner);
  const { session } = await creating;
  const { id } = must(session, 'a session');
  const bytes = blobParts({ kind: 'DOWNLOAD', leaseId }, 'bytes');
  const { blobId } = await clients.blobs.writeBlob(bytes, asRunner);
  await clients.runners.addDownload({ leaseId, blobId, filename: 'a.txt' }, asRunner);
  const wanted = { sessionId: id, createdAfter: undefined, createdBefore: undefined };
  const { downloads } = await clients.downloads.listDownloads(wanted, as);
  await clients.runners.reportRunner({ ...HOLDER, leaseIds: [leaseId] }, asRunner);
  const help = { sessionId: id, instructions: 'help', timeout: undefined };
  const { handoff } = await clients.handoffs.createHandoff(help, as);
  const own = { session: id, handoff: must(handoff, 'a handoff').id };
  return { ...own, download: must(downloads[0], 'a download').id };
}
