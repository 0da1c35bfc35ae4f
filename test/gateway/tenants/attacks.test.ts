/**
 * The attacks of one project on the labels, certificates and secrets of another, with its own valid
 * key: each is refused as for a missing object, and changes nothing.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { otherProjects } from '../../runner/attacks/table/other-projects.ts';
import { sealedFor } from '../../support/clients/seal.ts';
import { type Answer, ask, json } from '../sessions/runner.ts';
import { MISSING, openMatrix } from './matrix.ts';
import type { Objects, Tenant } from './tenant.ts';

const test = suite('gateway/tenants/attacks');
/** Of the victim's session and label. */
const NAME = 'plan-of-the-victim';

type Name = (typeof otherProjects)[number]['name'];
type Send = (method: string, path: string, body?: object) => Promise<Answer>;
type Scene = Awaited<ReturnType<typeof openScene>>;

/** The attacker's project is the one that `publish` is for; the victim's session has a label. */
async function openScene() {
  const matrix = await openMatrix();
  const { own: attacker, other: victim } = matrix;
  const by =
    ({ key }: Tenant): Send =>
    (method, path, body) => {
      const { headers = {}, ...content } = body === undefined ? {} : json(body);
      const all = { ...headers, 'x-svc-api-key': key };
      return ask(matrix.gateway.url, method, path, { ...content, headers: all });
    };
  const labelled = await by(victim)('PUT', `/v1/sessions/${victim.objects.session}/labels`, {
    labels: [NAME],
  });
  assert.is(labelled.status, 200);
  const attached = await by(victim)('POST', `/v1/functions/${victim.objects.function}/secrets`, {
    secretId: victim.objects.secret,
  });
  assert.is(attached.status, 204);
  const { data } = (await by(victim)('GET', '/v1/labels')).json as {
    data: { id: string; name: string }[];
  };
  const label = String(data.find(({ name }) => name === NAME)?.id);
  return {
    ...matrix,
    victim: { ...victim.objects, label },
    attacker,
    asVictim: by(victim),
    send: by(attacker),
  };
}

type Of = (id: string) => [string, string, (object | undefined)?];

/** The answer for this object is the one for an object that does not exist. Its status. */
async function asMissing({ send }: Scene, of: Of, id: string): Promise<number> {
  const masked = ({ status, text }: Answer, own: string) => [status, text.replaceAll(own, '<id>')];
  const answer = await send(...of(id));
  const missing = masked(await send(...of(MISSING.label)), MISSING.label);
  assert.equal(masked(answer, id), missing, of(id).join(' '));
  return answer.status;
}

/** As asMissing; and it is refused. */
async function looksMissing(scene: Scene, of: Of, id: string): Promise<void> {
  const status = await asMissing(scene, of, id);
  assert.ok(status === 404 || status === 400, String(status));
}

/** A value, sealed for the project's key pair. */
async function sealedBy(send: Send) {
  const { json: pair } = await send('GET', '/v1/secrets/keypair');
  return sealedFor(pair as { id: string; publicKey: string }, 'a value');
}

const ACTS: Readonly<Record<Name, (scene: Scene) => Promise<void>>> = {
  "read, rename or delete another project's labels": async (scene) => {
    const { send, victim } = scene;
    assert.not.match((await send('GET', '/v1/labels')).text, NAME);
    assert.not.match((await send('GET', `/console/api/v1/search?q=${NAME}`)).text, victim.session);
    const path = (id: string) => `/v1/labels/${id}`;
    await looksMissing(scene, (id) => ['PATCH', path(id), { name: 'mine' }], victim.label);
    await looksMissing(scene, (id) => ['DELETE', path(id)], victim.label);
  },
  "find another project's sessions by a label, or give them one": async (scene) => {
    const { send, victim } = scene;
    for (const label of [NAME, NAME.toUpperCase(), victim.label]) {
      assert.equal((await send('GET', `/v1/sessions?label=${label}`)).json, [], label);
    }
    const path = (id: string) => `/v1/sessions/${id}/labels`;
    for (const labels of [['x'], [NAME], []]) {
      await looksMissing(scene, (id) => ['PUT', path(id), { labels }], victim.session);
    }
  },
  "take a label's name from another project, or learn that it has it": async (scene) => {
    const { send, attacker, victim } = scene;
    const made = await send('POST', '/v1/labels', { name: NAME });
    assert.is(made.status, 201, made.text);
    const { id } = made.json as { id: string };
    assert.is.not(id, victim.label);
    const own = `/v1/sessions/${attacker.objects.session}/labels`;
    assert.is((await send('PUT', own, { labels: [NAME] })).status, 200);
    const found = (await send('GET', `/v1/sessions?label=${NAME}`)).json as { id: string }[];
    assert.equal(
      found.map((one) => one.id),
      [attacker.objects.session],
    );
    assert.is((await send('PATCH', `/v1/labels/${id}`, { name: 'renamed' })).status, 200);
    assert.is((await send('DELETE', `/v1/labels/${id}`)).status, 204);
  },
  "read or delete another project's certificates": async (scene) => {
    const { send, victim } = scene;
    const path = (id: string) => `/v1/certificates/${id}`;
    assert.not.match((await send('GET', '/v1/certificates')).text, victim.certificate);
    for (const method of ['GET', 'DELETE']) {
      await looksMissing(scene, (id) => [method, path(id)], victim.certificate);
      await looksMissing(scene, (id) => [method, path(id.toUpperCase())], victim.certificate);
    }
  },
  "have a session or a function trust another project's certificate": async (scene) => {
    const { attacker, victim } = scene;
    const trusting = (id: string) => ({
      proxySettings: { caCertificates: [attacker.objects.certificate, id] },
    });
    const invoke = `/v1/functions/${attacker.objects.function}/invoke`;
    for (const [path, body] of [
      ['/v1/sessions', trusting],
      [invoke, (id: string) => ({ sessionCreateParams: trusting(id) })],
    ] as const) {
      await looksMissing(scene, (id) => ['POST', path, body(id)], victim.certificate);
      await looksMissing(scene, (id) => ['POST', path, body(id)], victim.certificate.toUpperCase());
    }
    const config = JSON.stringify(trusting(victim.certificate));
    const configured = await scene.publish({ name: 'trusting', config });
    const { status, text } = await scene.send('POST', `/v1/functions/${configured}/invoke`, {});
    assert.is(status, 400, text);
    assert.match(text, 'must be a certificate of this project');
  },
  "read, change or delete another project's secrets": async (scene) => {
    const { send, victim } = scene;
    const value = await sealedBy(send);
    assert.not.match((await send('GET', '/v1/secrets')).text, victim.secret);
    for (const method of ['GET', 'DELETE', 'PATCH']) {
      const body = method === 'PATCH' ? value : undefined;
      const of: Of = (id) => [method, `/v1/secrets/${id}`, body];
      await looksMissing(scene, of, victim.secret);
      await looksMissing(scene, of, victim.secret.toUpperCase());
    }
  },
  "attach or detach another project's secret, or see what its function has": async (scene) => {
    const { attacker, victim } = scene;
    const of = (functionId: string) => `/v1/functions/${functionId}/secrets`;
    const own = attacker.objects;
    for (const secretId of [victim.secret, victim.secret.toUpperCase()]) {
      await looksMissing(scene, (id) => ['POST', of(own.function), { secretId: id }], secretId);
      const detach: Of = (id) => ['DELETE', `${of(own.function)}/${id}`];
      assert.is(await asMissing(scene, detach, secretId), 204);
    }
    const { function: theirs } = victim;
    await looksMissing(scene, (id) => ['GET', of(id)], theirs);
    for (const secretId of [own.secret, victim.secret]) {
      await looksMissing(scene, (id) => ['POST', of(id), { secretId }], theirs);
      await looksMissing(scene, (id) => ['DELETE', `${of(id)}/${secretId}`], theirs);
    }
  },
  "have another project's key pair or secret open with a function of its own": async (scene) => {
    const { send, asVictim, attacker } = scene;
    const { keypairId: theirs } = await sealedBy(asVictim);
    const { keypairId, ...value } = await sealedBy(send);
    assert.is.not(theirs, keypairId);
    const secret = `/v1/secrets/${attacker.objects.secret}`;
    const named = (id: string) => ({ secretKey: 'THEIRS', keypairId: id, ...value });
    await looksMissing(scene, (id) => ['POST', '/v1/secrets', named(id)], theirs);
    await looksMissing(scene, (id) => ['PATCH', secret, { keypairId: id, ...value }], theirs);
  },
  "take a secret's name from another project, or learn that it has it": async (scene) => {
    const { send, asVictim, victim } = scene;
    const { secretKey } = (await asVictim('GET', `/v1/secrets/${victim.secret}`)).json as {
      secretKey: string;
    };
    const made = await send('POST', '/v1/secrets', { secretKey, ...(await sealedBy(send)) });
    assert.is(made.status, 201, made.text);
    const { id } = made.json as { id: string };
    assert.is((await send('DELETE', `/v1/secrets/${id}`)).status, 204);
  },
};

/** What the victim has. */
async function stateOf({ asVictim }: Scene, objects: Objects): Promise<string[]> {
  const { session, certificate, secret } = objects;
  const paths = [`/v1/sessions/${session}`, '/v1/labels', `/v1/sessions?label=${NAME}`];
  const more = [
    ...['/v1/certificates', `/v1/certificates/${certificate}`],
    ...['/v1/secrets', `/v1/secrets/${secret}`, `/v1/functions/${objects.function}/secrets`],
  ];
  const answers = await Promise.all([...paths, ...more].map((path) => asVictim('GET', path)));
  return answers.map(({ status, text }) => `${status} ${text}`);
}

test(`${otherProjects.length} attacks on another project's objects are refused`, async () => {
  await using scene = await openScene();
  for (const { name } of otherProjects) {
    const before = await stateOf(scene, scene.victim);
    assert.ok(before.every((answer) => answer.startsWith('200 ')) && before[2]?.includes(NAME));
    assert.match(before.at(-1) ?? '', String(scene.victim.secret), 'attached');
    await ACTS[name](scene);
    assert.equal(await stateOf(scene, scene.victim), before, name);
  }
});

test.run();
