/** The params of a session. proto/spec/sessions.md 1. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '../../../core/common/ids.ts';
import { faultOf } from '../../support/fault.ts';
import { openSessions } from './runs.ts';

const test = suite('core/sessions/create');

const long = (length: number) => 'x'.repeat(length);

/** Body, field, and the rest of the message after the field. */
const WRONG: [object, string, string][] = [
  [{ timeout: 59 }, 'timeout', 'must be >= 60.'],
  [{ timeout: 21_601 }, 'timeout', 'must be <= 21600.'],
  [
    { region: 'us-west-1' },
    'region',
    'must be one of us-west-2, us-east-1, eu-central-1, ap-southeast-1.',
  ],
  [{ extensionId: '' }, 'extensionId', 'must NOT have fewer than 1 characters.'],
  [{ userMetadata: { a: long(504) } }, 'userMetadata', 'must be less than 512 characters of JSON.'],
  [{ proxies: 'yes' }, 'proxies', 'must be boolean or array.'],
  [{ proxies: 1 }, 'proxies', 'must be boolean or array.'],
  [{ proxies: ['none'] }, 'proxies[0]', 'must be object.'],
  [{ proxies: [{}] }, 'proxies[0]', "must have required property 'type'."],
  [{ proxies: [{ type: 'no' }] }, 'proxies[0].type', 'must be one of browserbase, external, none.'],
  [
    { proxies: [{ type: 'none' }, { type: 'external' }] },
    'proxies[1]',
    "must have required property 'server'.",
  ],
  [{ proxies: [{ type: 'external', server: 5 }] }, 'proxies[0].server', 'must be string.'],
  [
    { proxies: [{ type: 'external', server: 'h', username: 5 }] },
    'proxies[0].username',
    'must be string.',
  ],
  [
    { proxies: [{ type: 'none', domainPattern: 5 }] },
    'proxies[0].domainPattern',
    'must be string.',
  ],
  [
    { proxies: [{ type: 'none', domainPattern: 'a(?=b)' }] },
    'proxies[0].domainPattern',
    'must be a regular expression of RE2.',
  ],
  [
    { proxies: [{ type: 'none', domainPattern: long(257) }] },
    'proxies[0].domainPattern',
    'must NOT have more than 256 characters.',
  ],
  [
    { proxies: [{ type: 'none', domainPattern: '(?:.?.?){1000}' }] },
    'proxies[0].domainPattern',
    'must be a smaller pattern: its repeat counts multiply.',
  ],
  [
    { proxies: Array.from({ length: 21 }, () => ({ type: 'none' })) },
    'proxies',
    'must NOT have more than 20 items.',
  ],
  [
    { proxies: [{ type: 'external', server: 'ftp://u:hidden@h' }] },
    'proxies[0].server',
    'must be the address of an http, https or socks5 proxy.',
  ],
  [
    { proxies: [{ type: 'browserbase', geolocation: {} }] },
    'proxies[0].geolocation',
    "must have required property 'country'.",
  ],
  [
    { proxies: [{ type: 'browserbase', geolocation: { country: 'USA' } }] },
    'proxies[0].geolocation.country',
    'must NOT have more than 2 characters.',
  ],
  [
    { proxySettings: { caCertificates: ['01a1fbc0-0000-7000-8000-000000000000'] } },
    'proxySettings.caCertificates[0]',
    'must be a certificate of this project.',
  ],
];
const NO_HOST = 'must be a host: a name, an address or *, without scheme, port or path.';
const WRONG_SETTINGS: [object, string, string][] = [
  [{ context: { id: '' } }, 'context.id', 'must NOT have fewer than 1 characters.'],
  [{ viewport: { width: 0 } }, 'viewport.width', 'must be >= 1.'],
  [{ viewport: { height: 16_385 } }, 'viewport.height', 'must be <= 16384.'],
  [{ os: 'beos' }, 'os', 'must be one of windows, mac, linux, mobile, tablet.'],
  [{ engine: 'gecko' }, 'engine', 'must be one of chromium, headless-shell.'],
  [{ allowedDomains: [''] }, 'allowedDomains[0]', 'must NOT have fewer than 1 characters.'],
  [{ allowedDomains: [long(254)] }, 'allowedDomains[0]', 'must NOT have more than 253 characters.'],
  [{ network: { deny: ['a', 'http://b.test/'] } }, 'network.deny[1]', NO_HOST],
  [{ network: { allow: ['b.test:443'] } }, 'network.allow[0]', NO_HOST],
  [{ network: { allow: ['a*.test'] } }, 'network.allow[0]', NO_HOST],
  [
    { network: { deny: Array.from({ length: 501 }, () => 'a') } },
    'network.deny',
    'must NOT have more than 500 items.',
  ],
  [{ extensionId: long(129) }, 'extensionId', 'must NOT have more than 128 characters.'],
];

test('each wrong field is a 400 that names it', async () => {
  await using app = await openSessions();
  const all = [
    ...WRONG,
    ...WRONG_SETTINGS.map(
      ([settings, field, problem]) =>
        [{ browserSettings: settings }, `browserSettings.${field}`, problem] as const,
    ),
  ];
  for (const [body, field, problem] of all) {
    const fault = await faultOf(app.create(body as never));
    assert.equal([fault.reason, fault.facts['field']], ['INVALID_FIELD', field]);
    assert.is(fault.message, `\`${field}\` ${problem}`);
  }
  const captchaImageSelector = long(65_536);
  const tooMuch = await faultOf(app.create({ browserSettings: { captchaImageSelector } as never }));
  assert.is(tooMuch.message, '`body` must be at most 65536 characters of JSON.');
  assert.equal(
    (await app.clients.sessions.listSessions({ label: [] }, app.asProject)).sessions,
    [],
  );
});

test('every field reaches the runner unchanged', async () => {
  await using app = await openSessions();
  const body = {
    browserSettings: {
      viewport: { width: 1288, height: 711 },
      blockAds: true,
      solveCaptchas: false,
      recordSession: false,
      logSession: false,
      advancedStealth: true,
      verified: true,
      os: 'linux',
      ignoreCertificateErrors: true,
      captchaImageSelector: '#a',
      captchaInputSelector: '#b',
      engine: 'headless-shell',
      allowedDomains: ['example.com'],
      network: { allow: ['example.com', '*'], deny: ['::1', '*.ads.example.com'] },
      fingerprint: { devices: ['desktop'] },
    },
    timeout: 21_600,
    keepAlive: false,
    region: 'ap-southeast-1',
    proxies: [
      { type: 'external', server: 'http://h:1', username: 'u', password: 'p', domainPattern: 'a' },
      { type: 'browserbase', geolocation: { country: 'US', state: 'NY', city: 'NEW_YORK' } },
      { type: 'none' },
    ],
    userMetadata: { a: { b: ['c', 1, null] }, long: long(400) },
  };
  const { work, session } = await app.run(body as never);
  assert.equal(JSON.parse(work.sessionParamsJson), body);
  assert.equal(session.userMetadata, body.userMetadata);
  for (const proxies of [true, false, []]) {
    const { work: other, leaseId } = await app.run({ proxies });
    assert.equal(JSON.parse(other.sessionParamsJson).proxies ?? [], proxies);
    await app.end(leaseId);
  }
  for (const timeout of [60, 21_600])
    assert.is((await app.run({ timeout })).work.timeoutMs, timeout * 1_000);
  const { work: nulled } = await app.run({ proxies: null });
  assert.is(nulled.sessionParamsJson, '{}', 'null says nothing');
});

test('metadata of 511 characters is accepted', async () => {
  await using app = await openSessions();
  const userMetadata = { a: long(511 - '{"a":""}'.length) };
  assert.equal((await app.run({ userMetadata })).session.userMetadata, userMetadata);
});

test('another project, and missing contexts and extensions, are refused', async () => {
  await using app = await openSessions();
  const { projects, contexts } = app.clients;
  const [project] = (await projects.listProjects({}, app.asProject)).projects;
  assert.ok(await app.run({ projectId: project?.id ?? '' }));
  assert.is((await faultOf(app.create({ projectId: newId() }))).reason, 'PROJECT_MISMATCH');
  const none = { projectId: undefined, name: undefined };
  const { id } = await contexts.createContext(none, app.asProject);
  await contexts.deleteContext({ id }, app.asProject);
  for (const missing of [id, newId(), 'x']) {
    const context = { id: missing, persist: false };
    const inContext = await faultOf(app.create({ browserSettings: { context } as never }));
    assert.is(inContext.message, 'Context not found.');
    const atTop = await faultOf(app.create({ extensionId: missing }));
    assert.is(atTop.message, 'Extension not found.');
    const browserSettings = { extensionId: missing } as never;
    assert.is((await faultOf(app.create({ browserSettings }))).message, 'Extension not found.');
  }
});

test.run();
