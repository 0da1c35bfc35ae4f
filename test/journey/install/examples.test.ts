/**
 * Every example of README.md and of the guide runs as a reader runs it: the blocks of a page one
 * after another in one shell, with one service for all pages. Addresses, the key and the names in
 * angle brackets are replaced, and nothing else. A block that no step names fails the test.
 */
import type { Page } from 'playwright-core';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { must } from '../../../proto/common/must.ts';
import { ended, invoke } from '../../support/clients/functions.ts';
import { functionIds } from '../../support/clients/journey.ts';
import { DRAW } from '../../support/clients/live.ts';
import { allBlocks, blocksOf } from '../../support/examples/blocks.ts';
import {
  checkSteps,
  openPlace,
  type Pages,
  type Place,
  runPages,
} from '../../support/examples/pages.ts';
import { installPython, runPython } from '../../support/examples/python.ts';
import { openReader, type Reader } from '../../support/examples/reader.ts';
import { RECIPES } from '../../support/examples/recipes.ts';
import {
  type Desk,
  elsewhere,
  file,
  filled,
  LIMIT_MS,
  linesOf,
  onPage,
  openSession,
  prepared,
  printedSession,
  program,
  release,
  repeated,
  type Session,
  shell,
} from '../../support/examples/steps.ts';
import { until } from '../../support/poll.ts';
import { freePort } from '../../support/port.ts';
import { startPostgres } from '../../support/postgres.ts';
import { manifest, zipOf } from '../../support/runner/zips.ts';
import { authority } from '../../support/servers/certificates.ts';

const test = suite('journey/install/examples');
const TITLE = /"title": "Rooms"/;
const START = elsewhere(
  'npm ci && npm start',
  'test/support/service/bare.sh',
  'npm ci',
  'npm start',
);
async function titleId({ stack }: Desk): Promise<string> {
  return must((await functionIds(stack))['title'], 'the function title');
}

/** An invocation that has ended, unless its page never answers. */
async function invoked(desk: Desk, path: string): Promise<string> {
  const { id } = await invoke(desk.stack, await titleId(desk), { url: desk.site.url + path });
  if (path !== '/silent') await ended(desk.stack, id);
  return id;
}

const PAGES: Pages = {
  quickstart: [
    START,
    shell('alias tabern='),
    shell('tabern try', /^Rooms$/m),
    shell('npm install playwright-core'),
    file('// page.mjs', 'page.mjs'),
    shell('node page.mjs', /^[-0-9a-f]{36} Rooms$/m),
    { begins: 'python3 -m venv', run: (code, { reader }) => installPython(reader, code) },
    file('# page.py', 'page.py'),
    { begins: 'python page.py', run: (code, desk) => runPython(desk.reader, code, /Rooms|^ws:/m) },
    shell('tabern init', TITLE),
  ],
  README: [
    START,
    repeated('alias tabern=', 'quickstart'),
    repeated('// page.mjs', 'quickstart'),
    repeated('import os', 'quickstart'),
    repeated('tabern init', 'quickstart'),
    repeated('import { chromium }', 'functions'),
  ],
  sessions: [
    program('// page.mjs', /\/rooms$/m, 'npm install puppeteer-core'),
    elsewhere('// resume.mjs', 'test/journey/sessions/resume.test.ts', 'connection.listen()'),
    {
      begins: 'curl -X POST http://127.0.0.1:4747/v1/sessions',
      async run(code, desk) {
        const session = await printedSession(desk.reader.run(code));
        assert.equal((session as { labels?: string[] }).labels, ['nightly']);
        await release(desk, session);
      },
    },
    {
      begins: 'curl -X POST http://127.0.0.1:4747/v1/sessions',
      async run(code, desk) {
        const session = await printedSession(desk.reader.run(code));
        await onPage(session.connectUrl, async (page) => {
          const refused = await page.goto('http://ads.example.com/').catch(String);
          assert.match(String(refused), /BLOCKED_BY_CLIENT/);
        });
        await release(desk, session);
      },
    },
  ],
  functions: [
    {
      begins: 'tabern init',
      async run(code, { reader }) {
        // in the background, at a free port
        const port = await freePort();
        const away = '>dev.log 2>&1 </dev/null & echo $! >dev.pid';
        const serve = `tabern dev index.ts --port ${port} ${away}`;
        await reader.run(code.replace(/^tabern dev index\.ts$/m, serve));
        await until(async () => (await reader.read('dev.log')).includes('listening on'), LIMIT_MS);
      },
    },
    {
      begins: 'import { chromium }',
      async run(code, { reader }) {
        const created = linesOf((await reader.read('index.ts')).replace(/^\/\*\*.*\n/m, ''));
        assert.equal(linesOf(code.replace(/http:\S*\/rooms/, 'https://example.com/')), created);
      },
    },
    shell('npm install ../tabern/dist/functions', /(?:)/, (code) =>
      // in a project beside the clone
      ['(mkdir ../../own', 'cd ../../own', 'npm init -y >new.log', `${code.trim()})`].join(' && '),
    ),
    {
      begins: 'curl --json',
      async run(code, { reader }) {
        const port = must(/listening on \S+:(\d+)/.exec(await reader.read('dev.log'))?.[1], 'port');
        assert.match(await reader.run(code.replace('14113', port)), /Rooms/);
        await reader.run('kill "$(cat dev.pid)"');
      },
    },
    {
      begins: 'tabern publish',
      async run(code, desk) {
        const [publish, run, ...others] = code.trim().split('\n');
        assert.match(await desk.reader.run(`${publish}\n${run}`), TITLE);
        const [logs, cancel] = others;
        const over = { invocation: await invoked(desk, '/rooms') };
        assert.match(await desk.reader.run(filled(must(logs, 'logs'), over)), /opening http/);
        const open = { invocation: await invoked(desk, '/silent') };
        await desk.reader.run(filled(must(cancel, 'cancel'), open));
        assert.is((await ended(desk.stack, open.invocation)).status, 'FAILED');
      },
    },
    {
      begins: 'curl -X POST http',
      async run(code, desk) {
        const ids = { function: await titleId(desk), invocation: await invoked(desk, '/rooms') };
        const said = await desk.reader.run(filled(code, ids));
        assert.match(said, /"status":"PENDING"[\s\S]*"status":"COMPLETED"/);
      },
    },
    shell('tabern schedules create', /\btrue\b.*0 9 \* \* MON-FRI.*Europe\/Berlin/),
    file("import { defineFn } from 'tabern';\nimport { z }", 'echo.ts'),
    {
      begins: "import { defineFn } from 'tabern';\n\nlet count",
      async run(code, { reader }) {
        await reader.write('counted.ts', code);
        await reader.write('all.ts', "import './echo.ts';\nimport './counted.ts';\n");
        await reader.run('npm install zod && tabern publish all.ts');
        assert.match(await reader.run(`tabern invoke echo --params '{"word":"ab"}'`), /"ab"/);
        const wrong = reader.run(`tabern invoke echo --params '{"word":1}'`);
        assert.match(await wrong.then(() => 'accepted', String), /exit [12]:[\s\S]*word/);
        const twice = await reader.run('tabern invoke counted\ntabern invoke counted');
        assert.equal(twice.match(/^\d+$/gm), ['1', '1']);
      },
    },
    elsewhere('BROWSERBASE_API_KEY=', 'test/journey/functions/published-clis.test.ts', 'BASE_URL'),
    elsewhere('{ "imports"', 'test/runner/builds/install/deno-project.test.ts', 'jsr:', 'npm:'),
  ],
  secrets: [
    shell('export SHOP_TOKEN', /^[-0-9a-f]{36} +SHOP_TOKEN$/m),
    file('// login.ts', 'login.ts'),
    {
      begins: 'tabern publish login.ts',
      async run(code, { reader }) {
        const said = await reader.run(code);
        assert.match(said, /"characters": 19/);
        assert.match(said, /token \*\*\*/);
        assert.not.match(said, /a-token-of-the-shop/);
      },
    },
    shell('tabern secrets detach', /^[-0-9a-f]{36}$/m),
    program(
      '// seal.mjs',
      /^[-0-9a-f]{36} API_TOKEN$/m,
      'npm install @browserbasehq/sdk @hpke/core',
    ),
  ],
  contexts: [
    shell('curl -X POST http://127.0.0.1:4747/v1/contexts', /"publicKey"/),
    {
      begins: 'curl -X POST http://127.0.0.1:4747/v1/sessions',
      async run(code, desk) {
        const own = filled(code, { context: await contextId(desk) });
        const session = await printedSession(desk.reader.run(own));
        await onPage(session.connectUrl, (page) => page.goto(desk.site.url).then(() => {}));
        await release(desk, session);
      },
    },
    {
      begins: 'curl -X POST http://127.0.0.1:4747/v1/functions',
      async run(code, desk) {
        const ids = { function: await titleId(desk), context: await contextId(desk) };
        // the function's own address is a public one
        const params = JSON.stringify({ url: `${desk.site.url}/rooms` });
        const own = code.replace('"params":{}', `"params":${params}`);
        const said = await desk.reader.run(filled(own, ids));
        const { id } = JSON.parse(must(/^\{.*\}$/m.exec(said)?.[0], said)) as { id: string };
        assert.is((await ended(desk.stack, id)).status, 'COMPLETED');
      },
    },
  ],
  recordings: [
    {
      begins: 'curl -X POST',
      async run(code, desk) {
        const session = await openSession(desk);
        await onPage(session.connectUrl, async (page) => {
          await page.goto(desk.site.url);
          await page.evaluate(DRAW);
        });
        await release(desk, session);
        await until(async () => {
          const said = await desk.reader.run(filled(code, { session: session.id }));
          return /"downloadUrl":"http/.test(said);
        }, LIMIT_MS);
      },
    },
    {
      begins: 'curl -H "X-SVC-API-Key',
      async run(code, desk) {
        const session = await openSession(desk);
        assert.match(
          await desk.reader.run(filled(code, { session: session.id })),
          /"debuggerFullscreenUrl":"http/,
        );
        await release(desk, session);
      },
    },
    elsewhere('<iframe', 'test/journey/sessions/live-view.test.ts', 'browserbase-disconnected'),
  ],
  webhooks: [
    shell('curl -X POST', /"secret":"whsec_/),
    {
      begins: '// receiver.mjs',
      async run(code, desk) {
        const { reader } = desk;
        const port = String(await freePort());
        const away = (name: string) => `>${name}.log 2>&1 </dev/null & echo $! >>pids`;
        await reader.write('receiver.mjs', code.replace('3000', port));
        const listen = `tabern listen --forward-to http://localhost:${port}/hook`;
        await reader.run(`npm install standardwebhooks\n${listen} ${away('listen')}`);
        const secret = await until(
          async () => /whsec_\S+/.exec(await reader.read('listen.log'))?.[0],
          LIMIT_MS,
        );
        await reader.run(`WEBHOOK_SECRET=${secret} node receiver.mjs ${away('receiver')}`);
        try {
          const isUp = () =>
            fetch(`http://127.0.0.1:${port}`, { method: 'POST' }).catch(() => null);
          await until(async () => (await isUp())?.status === 400, LIMIT_MS);
          const id = await invoked(desk, '/rooms');
          const line = new RegExp(`functions\\.invocations\\.completed ${id}`);
          await until(async () => line.test(await reader.read('receiver.log')), LIMIT_MS);
        } finally {
          await reader.run('kill $(cat pids)');
        }
      },
    },
  ],
  certificates: [
    {
      begins: 'curl -F file=@authority.pem',
      async run(code, { reader }) {
        await reader.write('authority.pem', (await authority()).cert);
        await reader.run(`${code.trim()} >certificate.json`);
      },
    },
    {
      begins: 'curl -X POST http://127.0.0.1:4747/v1/sessions',
      async run(code, desk) {
        const made = JSON.parse(await desk.reader.read('certificate.json')) as { id: string };
        const trusting = filled(code, { certificate: made.id });
        await release(desk, await printedSession(desk.reader.run(trusting)));
      },
    },
  ],
  files: [
    {
      begins: 'curl -H "X-SVC-API-Key',
      async run(code, desk) {
        const session = await openSession(desk);
        const printed = desk.reader.run(filled(code, { session: session.id }));
        assert.match(await printed, /"downloads":\[\],"total":0,"limit":100,"offset":0/);
        await release(desk, session);
      },
    },
    {
      begins: 'curl -F file=@report.pdf',
      async run(code, desk) {
        const session = await openSession(desk);
        await desk.reader.write('report.pdf', '%PDF-1.4 a report');
        await desk.reader.run(filled(code, { session: session.id }));
        await desk.reader.run(`echo '${JSON.stringify(session)}' >session.json`);
      },
    },
    {
      begins: 'const cdp',
      async run(code, desk) {
        const session = JSON.parse(await desk.reader.read('session.json')) as Session;
        await onPage(session.connectUrl, async (page) => {
          await page.setContent('<input type=file>');
          const act = new Function('page', `return (async () => {${code}})()`);
          await (act as (page: Page) => Promise<void>)(page);
          const text = "document.querySelector('input').files[0].text()";
          assert.is(await page.evaluate(text), '%PDF-1.4 a report');
        });
        await release(desk, session);
      },
    },
    {
      begins: 'curl -F file=@extension.zip',
      async run(code, { reader }) {
        const zip = await zipOf({ 'manifest.json': manifest() });
        await reader.write('extension.zip', zip);
        assert.match(await reader.run(code), /"id":"/);
      },
    },
  ],
  'one-shots': [
    shell('curl -X POST http://127.0.0.1:4747/v1/screenshot', /(?:)/, (code) => {
      return `${code.trim()}\nhead -c 4 rooms.png | tail -c 3 | grep -q PNG`;
    }),
    shell(
      'curl -X POST http://127.0.0.1:4747/v1/markdown',
      /\(http\S+\)[\s\S]*"text":"one"/,
      (code) => `${code.trim()}\nhead -c 5 page.pdf | grep -q %PDF-`,
    ),
    program('// fetch.mjs', /200[\s\S]*Rooms/, 'npm install @browserbasehq/sdk'),
  ],
  deployment: [
    shell('sudo apt install', /(?:)/, (code) =>
      code.replace('sudo apt install', 'apt-get install --simulate -qq'),
    ),
    elsewhere('npm run binary\n', 'test/support/service/binary.ts', 'packaging/build.ts'),
    shell('sudo install', /(?:)/, verifiedUnit),
    elsewhere('npm run binary && docker', 'test/journey/install/image.test.ts', 'podman'),
    elsewhere('npm run binary\ndocker compose', 'test/journey/install/image.test.ts', 'compose'),
    elsewhere(
      'npm run binary\ndocker compose',
      'test/gateway/packaging/deploy.test.ts',
      'compose.split',
    ),
    shell('openssl', /(?:)/, (code) => `mkdir tls\n${inTls(code)}`),
    {
      begins: 'tabern serve --host 0.0.0.0',
      async run(code, desk) {
        const port = await freePort();
        await desk.reader.write('port', String(port));
        const serve = inTls(code).replace('0.0.0.0', '127.0.0.1').trim();
        await started(desk, `TABERN_PORT=${port} ${serve}`);
        await until(async () => /listening|base URL/.test(await desk.reader.read('log')), LIMIT_MS);
      },
    },
    {
      begins: 'curl --cacert',
      async run(code, { reader }) {
        const port = await reader.read('port');
        assert.match(await reader.run(inTls(code).replaceAll('4747', port)), /^Rooms$/m);
        await stopped(reader);
      },
    },
    {
      begins: 'server {',
      async run(code, desk) {
        const { reader } = desk;
        const [port, inner] = [await freePort(), await freePort()];
        const url = `https://localhost:${port}`;
        await started(desk, `TABERN_PUBLIC_URL=${url} TABERN_PORT=${inner} tabern serve`);
        const site = inTls(code)
          .replace('listen 443', `listen 127.0.0.1:${port}`)
          .replace(desk.stack.url, `http://127.0.0.1:${inner}`)
          .replace('tabern.example.com', 'localhost');
        await reader.write('nginx.conf', nginxAround(site));
        const nginx = 'PATH=$PATH:/usr/sbin nginx -e stderr -p "$PWD" -c nginx.conf';
        await reader.run(`mkdir temp && ${nginx} -t`);
        await reader.run(`${nginx} >nginx.log 2>&1 </dev/null & echo $! >>pids`);
        const isReady = () => reader.run(`curl -sf --cacert tls/tls.crt ${url}/readyz`);
        await until(
          () =>
            isReady().then(
              () => true,
              () => false,
            ),
          LIMIT_MS,
        );
        const own = `NODE_EXTRA_CA_CERTS=tls/tls.crt TABERN_BASE_URL=${url}`;
        const said = await reader.run(`${own} tabern try ${desk.site.url}/rooms`);
        assert.match(said, /^Rooms$/m);
        assert.match(said, `${url}/`);
        await stopped(reader);
      },
    },
    shell('tabern certs create', /tabern_certs\/runner-1\n[\s\S]*core,core\.internal,10\.0\.0\.5/),
    {
      begins: 'createuser',
      async run(code, desk) {
        const { reader, site } = desk;
        await using cluster = await startPostgres();
        const server = `export PGHOST=127.0.0.1 PGPORT=${cluster.port} PGUSER=tabern`;
        // the superuser of this server is `tabern`
        const own = code.replaceAll('tabern', 'owner');
        await reader.run(`${server}; printf 'secret\\nsecret\\n' | ${own}`);
        const [database, port] = [`127.0.0.1:${cluster.port}/owner`, await freePort()];
        const url = `TABERN_DATABASE_URL=postgres://owner:secret@${database}`;
        await started(desk, `${url} TABERN_PORT=${port} tabern serve`);
        await until(async () => /listening|base URL/.test(await reader.read('log')), LIMIT_MS);
        const base = `TABERN_BASE_URL=http://127.0.0.1:${port}`;
        assert.match(await reader.run(`${base} tabern try ${site.url}/rooms`), /^Rooms$/m);
        await stopped(reader);
      },
    },
    {
      begins: 'kubectl create namespace',
      async run(code, { reader }) {
        // says what it was asked, and lists the files that would become secrets
        // biome-ignore lint/suspicious/noTemplateCurlyInString: of the shell
        const list = 'case ${7:-} in --from-file=*) ls "${7#*=}";; esac';
        const asked = `kubectl() { echo "kubectl $*"; ${list}; }`;
        const said = await reader.run(`${asked}\n${code}`);
        for (const role of ['core', 'gateway', 'runner']) {
          assert.match(
            said,
            new RegExp(`tabern-${role}-tls .*\\nca\\.crt\\ntls\\.crt\\ntls\\.key`),
          );
        }
        assert.match(said, /master-key=[\w-]{43} --from-literal=api-key=svc_[\w-]{43} /);
      },
    },
    elsewhere('helm install', 'test/gateway/packaging/helm.test.ts', '--set'),
    elsewhere('kubectl -n browsers', 'test/gateway/packaging/helm.test.ts', '--set'),
    {
      begins: 'for POD in',
      async run(code, { reader }) {
        const pods = 'pod/tabern-core-0 pod/tabern-runner-0';
        const asked = `kubectl() { [ "$3" = get ] && echo ${pods} || echo "kubectl $*"; }`;
        const said = await reader.run(`${asked}\n${code}`);
        for (const pod of pods.split(' ')) {
          assert.match(said, `kubectl -n browsers exec ${pod} -- bash -c kill -HUP 1`);
        }
      },
    },
    elsewhere('ceil', 'test/gateway/packaging/helm.test.ts', 'promql'),
  ],
  operations: [
    elsewhere('NODE_OPTIONS=', 'test/journey/operations/trace.test.ts', 'preload'),
    {
      begins: 'tabern backup',
      async run(code, { stack, reader }) {
        await reader.run(`mkdir backups safe && cp '${stack.dataDir}/keys/master.key' safe/`);
        const own = code
          .replaceAll('/backups/', 'backups/')
          .replace('/safe/', 'safe/')
          .replace('/srv/', '')
          .replace('tabern-2026-11-23', 'tabern-$(date +%F)')
          .replace('tabern backup', `TABERN_DATA='${stack.dataDir}' tabern backup`);
        await reader.run(own);
        await reader.run('test -s tabern-new/tabern.db -o -d tabern-new');
      },
    },
  ],
};

const inTls = (code: string): string => code.replaceAll('/etc/tabern/', 'tls/');

/** Installs below a directory, and checks the unit where systemd does not run. */
function verifiedUnit(code: string): string {
  const own = code
    .replace(/^sudo systemctl.*$/gm, '')
    .replaceAll('sudo ', '')
    .replaceAll('/usr/local/bin/', '"$PWD"/root/usr/local/bin/')
    .replaceAll('/etc/', '"$PWD"/root/etc/');
  return [
    'mkdir -p dist root/usr/local/bin root/etc/systemd/system && cp /bin/true dist/tabern',
    own,
    'test "$(stat -c %a root/etc/tabern/api-key)" = 600',
    'sed -i "s|^Exec[A-Za-z]*=|&$PWD/root|" root/etc/systemd/system/tabern.service',
    'systemd-analyze verify root/etc/systemd/system/tabern.service',
  ].join('\n');
}

/** Files of nginx below the current directory; the site is the guide's. */
function nginxAround(site: string): string {
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const paths = temp.map((name) => `${name}_temp_path temp/${name};`).join('\n');
  return `daemon off;\npid nginx.pid;\nevents {}\nhttp {\naccess_log off;\n${paths}\n${site}}\n`;
}

/** Starts a service of its own in the background. */
async function started({ stack, reader }: Desk, command: string): Promise<void> {
  const own = `TABERN_DATA="$PWD/data" TABERN_API_KEY=${stack.apiKey} ${command}`;
  await reader.run(`${own} >log 2>&1 </dev/null & echo $! >>pids`);
}

/** Ends what runs in the background, and waits for the end. */
async function stopped(reader: Reader): Promise<void> {
  await reader.run('for pid in $(cat pids); do kill $pid; done; rm pids');
  await until(async () => {
    return reader.run('! pgrep -f "$PWD/data"').then(
      () => true,
      () => false,
    );
  }, LIMIT_MS);
}

async function contextId({ stack }: Desk): Promise<string> {
  const { data } = await stack.call<{ data: { id: string }[] }>('/v1/contexts');
  return must(data[0], 'a context').id;
}

test('each block of README.md and of the guide has a step, in order', () => {
  const pages = { ...PAGES, ...RECIPES };
  for (const page of allBlocks().keys()) checkSteps(page, pages[page] ?? []);
});

test('each block runs', async () => {
  await using place = await openPlace();
  const failures = await runPages(PAGES, place);
  await expectWithoutPypi(place);
  assert.is(failures.join('\n\n'), '');
});

/** Where pip has no packages, the rest of an example runs, and a wrong one fails. */
async function expectWithoutPypi(parts: Place): Promise<void> {
  const [install, page, run] = (allBlocks().get('quickstart') ?? []).filter(({ code }) =>
    /^python|^# page\.py/.test(code),
  );
  const { apiKey } = parts.stack;
  await using reader = openReader({ TABERN_API_KEY: apiKey, PIP_NO_INDEX: '1' });
  await installPython(reader, must(install, 'the installation').code);
  const code = prepared(must(page, 'page.py'), { ...parts, reader });
  const command = must(run, 'the command').code;
  await reader.write('page.py', code);
  await runPython(reader, command, /^ws:/m);
  for (const wrong of [
    code.replace('/v1/sessions', '/v1/nothing'),
    code.replace('with ', 'whit '),
  ]) {
    await reader.write('page.py', wrong);
    assert.ok(
      await runPython(reader, command, /^ws:/m).then(
        () => false,
        () => true,
      ),
    );
  }
}

test('a block without a language is a block too, and a heading in code is none', () => {
  const text = '## One\n\n```sh\n## no heading\n```\n\n### Two\n\n```\nplain\n```\n';
  assert.equal(
    blocksOf('page', text).map(({ section, language }) => [section, language]),
    [
      ['One', 'sh'],
      ['Two', ''],
    ],
  );
});

test.run();
