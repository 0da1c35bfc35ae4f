/**
 * `tabern core` with a database that cannot be used: one sentence that names the setting and the
 * remedy, and no password. With TLS, and on the schema of a later release.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import postgres from 'postgres';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readCoreConfig } from '../../../../core/config.ts';
import { startCore } from '../../../../core/main.ts';
import { coreFailure } from '../../../../gateway/process/exit-codes.ts';
import { openLog } from '../../../../proto/common/log.ts';
import { until } from '../../../support/poll.ts';
import { freePort } from '../../../support/port.ts';
import { hasPostgres, startPostgres } from '../../../support/postgres.ts';
import { EXPIRED, openPairs } from '../../../support/service/apart/pairs.ts';
import { startCore as startCommand, tabern } from '../../../support/service/command.ts';
import { tempDirectory } from '../../../support/temp.ts';

const test = suite('gateway/cli/roles/database');
const CLOCK = pathToFileURL(join(import.meta.dirname, '../../../support/service/clock-preload.ts'));
const log = openLog({ role: 'core', level: 'silent' });
const SECRET = 'secret-of-the-test';
/** The tests' own user, and one that needs a password and TLS. */
const ACCESS = `local all all trust
host all tabern 127.0.0.1/32 trust
hostssl all service,reader 127.0.0.1/32 scram-sha-256
`;

/** A server with TLS, and the user `service` who owns a database. */
async function open() {
  await using cleanup = new AsyncDisposableStack();
  const dir = cleanup.use(tempDirectory());
  const pairs = await openPairs(join(dir.path, 'own'));
  const others = await openPairs(join(dir.path, 'others'));
  const tls = await pairs.pair(['127.0.0.1']);
  const cluster = cleanup.use(await startPostgres({ tls, access: ACCESS }));
  const admin = await cluster.createDatabase();
  await run(admin, `CREATE ROLE service LOGIN PASSWORD '${SECRET}'`);
  await run(admin, `CREATE ROLE reader LOGIN PASSWORD '${SECRET}'`);
  await run(admin, `ALTER DATABASE ${new URL(admin).pathname.slice(1)} OWNER TO service`);
  const as = (user: string, more = '') =>
    `${admin.replace('tabern@', `${user}:${SECRET}@`)}${more}`;
  const TABERN_DATA = join(dir.path, 'data'); // has the master key of the database
  const settings = (url: string, env: Record<string, string> = {}) => ({
    TABERN_DATA,
    TABERN_DATABASE_URL: url,
    ...env,
  });
  const kept = cleanup.move();
  const close = () => kept.disposeAsync();
  return { dir, pairs, others, cluster, admin, as, settings, [Symbol.asyncDispose]: close };
}

async function run(url: string, text: string): Promise<Record<string, unknown>[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    return await sql.unsafe(text);
  } finally {
    await sql.end();
  }
}

type App = Awaited<ReturnType<typeof open>>;
type Env = ReturnType<App['settings']>;
type Refused = [name: string, env: Env, code: number, sentence: RegExp];

/** In this process: the exit code and the line of one attempt to start core. */
async function expectRefused(rows: readonly Refused[]): Promise<void> {
  for (const [name, env, code, sentence] of rows) {
    const ended = await startCore(readCoreConfig(env), log).then(
      async (core) => await core.close(),
      (error: unknown) => coreFailure(error, env.TABERN_DATA),
    );
    if (!ended) throw new Error(`${name}: core started`);
    assert.is(ended.code, code, `${name}: ${ended.message}`);
    assert.match(ended.message, sentence, name);
    assert.not.match(ended.message, SECRET, name);
  }
}

/** The status and the text; empty while nothing listens. */
async function readiness(url: string): Promise<string> {
  const answer = await fetch(`${url}/readyz`).catch(() => undefined);
  return answer === undefined ? '' : `${answer.status} ${await answer.text()}`;
}

/** `tabern gateway` of the core with that data directory. */
async function gatewayOf(data: string, token: string) {
  const port = await freePort();
  const metrics = `127.0.0.1:${await freePort()}`;
  const { child, ended } = tabern(['gateway'], {
    TABERN_DATA: `${data}-gateway`,
    TABERN_CORE: `unix:${data}/core.sock`,
    TABERN_GATEWAY_TOKEN: token,
    TABERN_PORT: String(port),
    TABERN_METRICS_LISTEN: metrics,
  });
  return {
    metrics,
    ready: () => readiness(`http://127.0.0.1:${port}`),
    async close() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Settings that are read, and refused. */
const configOf = (env: Env) => () => readCoreConfig(env);

/** Each with its sentence; nothing listens at `nowhere`. */
function unusable({ admin, as, settings }: App, nowhere: string): Refused[] {
  const tls = '?sslmode=require';
  const readOnly = `${admin}?options=-c%20default_transaction_read_only%3Don`;
  return [
    [
      'nothing listens',
      settings(nowhere),
      70,
      /^TABERN_DATABASE_URL names .* does not answer: start it, or set its address \(ECONNREF/,
    ],
    [
      'nothing listens at the direct address',
      settings(admin, { TABERN_DATABASE_DIRECT_URL: nowhere }),
      70,
      /^TABERN_DATABASE_DIRECT_URL names a server that does not answer/,
    ],
    [
      'a wrong password',
      settings(as('service', tls).replace(SECRET, 'wrong')),
      2,
      /TABERN_DATABASE_URL has a user or a password that the server refuses \(28P01\)$/m,
    ],
    [
      'no TLS',
      settings(as('service')),
      2,
      /refuses the user, or by its pg_hba\.conf .*: then add \?sslmode=require \(28000\)$/m,
    ],
    [
      'no database',
      settings(admin.replace(/\/\w+$/, '/none')),
      2,
      /names a database that does not exist: create it with createdb \(3D000\)$/m,
    ],
    [
      'a user who is not the owner',
      settings(as('reader', tls)),
      2,
      /has a user who may not create tables in the database: make it the owner \(42501\)$/m,
    ],
    [
      'a standby',
      settings(readOnly),
      70,
      /names a server that only reads, as a standby does: set the address of the primary/,
    ],
  ];
}

if (hasPostgres()) {
  test('a database that cannot be used is refused with a sentence', async () => {
    await using app = await open();
    const { admin, as, settings } = app;
    const tls = '?sslmode=require';
    const nowhere = admin.replace(/:\d+\//, `:${await freePort()}/`);
    await expectRefused([
      ...unusable(app, nowhere),
      [
        'no such host',
        settings(nowhere.replace('127.0.0.1', 'no..host')),
        2,
        /^TABERN_DATABASE_URL names a host that is not found \(ENOTFOUND\)$/m,
      ],
      [
        'an unknown parameter',
        settings(`${admin}?x_y=1`),
        2,
        /has a parameter that the server does not know \(42704\)$/m,
      ],
    ]);
    const wrong = settings(as('service', tls).replace(SECRET, 'wrong'));
    const { code, err, out } = await tabern(['core'], wrong).ended;
    assert.equal([code, out], [2, ''], err);
    assert.match(err, /^tabern: TABERN_DATABASE_URL has a user or a password/m);
    assert.not.match(err, /wrong|127\.0\.0\.1/);
  });

  test('a core waits for a database that does not answer yet, and says so', async () => {
    await using app = await open();
    const { cluster, as, settings } = app;
    await cluster.stop();
    const listen = `127.0.0.1:${await freePort()}`;
    const url = as('service', '?sslmode=require');
    const token = 'a-gateway-token-that-the-operator-has-set';
    const env = settings(url, { TABERN_METRICS_LISTEN: listen, TABERN_GATEWAY_TOKEN: token });
    const core = tabern(['core'], env);
    const ready = () => readiness(`http://${listen}`);
    const sentence = 'TABERN_DATABASE_URL names a server that does not answer: start it, or set';
    await until(async () => (await ready()) === `503 ${sentence} its address (ECONNREFUSED).\n`);
    const gateway = await gatewayOf(env.TABERN_DATA, token);
    const silent = /^503 .*Not ready: core does not answer: set TABERN_CORE to its address, or/;
    await until(async () => silent.test(await gateway.ready()));
    for (const at of [listen, gateway.metrics]) {
      const lives = () => fetch(`http://${at}/healthz`).then(({ status }) => status === 200);
      await until(() => lives().catch(() => false));
    }
    assert.is(core.child.exitCode, null);
    await cluster.start();
    await until(async () => (await ready()) === '200 ok\n');
    await until(async () => /Not ready: No runner is registered\./.test(await gateway.ready()));
    await gateway.close();
    assert.match(core.said.out, /core\.sock/);
    assert.is(core.said.err.split(sentence).length, 2, 'logged once');
    assert.not.match(core.said.err, SECRET);
    core.child.kill('SIGTERM');
    assert.is((await core.ended).code, 0);
    await cluster.stop();
    const waiting = tabern(['core'], env);
    await until(() => waiting.said.err.includes(sentence));
    waiting.child.kill('SIGTERM');
    const { code, out } = await waiting.ended;
    assert.equal([code, out], [0, ''], 'a signal ends the wait');
  });

  test('TLS to the database is verified by TABERN_DATABASE_CA_FILE', async () => {
    await using app = await open();
    const { pairs, others, cluster, as, settings, admin } = app;
    const ca = { TABERN_DATABASE_CA_FILE: pairs.ca.path };
    const wrong = { TABERN_DATABASE_CA_FILE: others.ca.path };
    const untrusted = /certificate is not trusted: set TABERN_DATABASE_CA_FILE to its authorities/;
    await expectRefused([
      ['no authorities', settings(as('service', '?sslmode=verify-full')), 2, untrusted],
      ['other authorities', settings(as('service'), wrong), 2, untrusted],
      ['others, unverified', settings(as('service', '?sslmode=require'), wrong), 2, untrusted],
    ]);
    assert.throws(
      configOf(settings(as('service', '?sslmode=disable'), ca)),
      /TABERN_DATABASE_CA_FILE needs TLS: remove sslmode=disable from the URL/,
    );
    for (const url of [as('service'), as('service', '?sslmode=verify-full')]) {
      await using _ = await startCore(readCoreConfig(settings(url, ca)), log);
      const query = `SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE usename = 'service'`;
      assert.equal([...(await run(admin, query))], [{ ssl: true }]);
    }
    await cluster.useCertificate(await pairs.pair(['db.internal']));
    const renamed = settings(as('service'), ca);
    const named = /names a server whose certificate has other names: use one of them/;
    await expectRefused([['another name', renamed, 2, named]]);
    await cluster.useCertificate(await pairs.pair(['127.0.0.1'], EXPIRED));
    const late = /names a server whose certificate is not valid now: renew it/;
    await expectRefused([['an expired one', settings(as('service'), ca), 2, late]]);
    await using plain = await startPostgres();
    const withoutTls = settings(await plain.createDatabase(), ca);
    await expectRefused([
      ['a server without TLS', withoutTls, 70, /or it has no TLS while TABERN_DATABASE_CA_FILE/],
    ]);
  });

  test('a release runs on the schema of the next one, and refuses a later one', async () => {
    await using app = await open();
    const { admin, settings } = app;
    {
      await using _ = await startCore(readCoreConfig(settings(admin)), log);
    }
    const [{ last } = { last: 0 }] = await run(admin, 'SELECT MAX(number) AS last FROM migrations');
    await run(
      admin,
      `ALTER TABLE sessions ADD COLUMN of_the_next_release TEXT;
       CREATE TABLE of_the_next_release (id TEXT PRIMARY KEY);
       INSERT INTO migrations (number, name) VALUES (${Number(last) + 1}, 'next')`,
    );
    const env = { ...settings(admin), TABERN_API_KEY: 'a-preset-key-of-the-tests' };
    {
      await using _ = await startCommand(env);
      const listed = await tabern(['projects', 'list', '--json'], { TABERN_DATA: env.TABERN_DATA })
        .ended;
      assert.is(listed.code, 0, listed.err);
      assert.is(JSON.parse(listed.out).length, 1);
    }
    await run(admin, `INSERT INTO migrations (number, name) VALUES (${Number(last) + 2}, 'later')`);
    await expectRefused([
      [
        'a later release',
        settings(admin),
        2,
        /the database of TABERN_DATABASE_URL was written by a newer tabern; run that one/,
      ],
    ]);
  });

  test('a core whose machine has another clock than the database is not ready', async () => {
    await using app = await open();
    const { admin, settings, dir } = app;
    const file = join(dir.path, 'clock');
    const listen = `127.0.0.1:${await freePort()}`;
    writeFileSync(file, '60000');
    const env = settings(admin, {
      NODE_OPTIONS: `--import ${CLOCK.href}`,
      TABERN_TEST_CLOCK: file,
      TABERN_METRICS_LISTEN: listen,
    });
    await using core = await startCommand(env);
    const ready = () => readiness(`http://${listen}`);
    const sentence = /^503 This machine’s clock is (59|60|61) s ahead of the database’s: set both/;
    assert.match(await ready(), sentence);
    assert.match(core.run.said.err, /this machine's clock is not the database's: set both by NTP/);
    const token = readFileSync(join(env.TABERN_DATA, 'keys/gateway.token'), 'utf8').trim();
    const gateway = await gatewayOf(env.TABERN_DATA, token);
    await until(async () => /This machine’s clock is/.test(await gateway.ready()));
    writeFileSync(file, '-4000');
    core.run.child.kill('SIGUSR2');
    await until(async () => (await ready()).startsWith('200'));
    writeFileSync(file, '-6000');
    core.run.child.kill('SIGUSR2');
    await until(async () => /^503 .* (5|6|7) s behind/.test(await ready()));
    await gateway.close();
  });
}

test.run();
