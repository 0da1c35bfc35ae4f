/** The console's page and assets: paths, headers, compression, and what is not served. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Console, KEY, openConsole } from './console.ts';

const test = suite('gateway/console/pages');

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
  "media-src 'self' blob:; connect-src 'self'; font-src 'self'; frame-src 'self'; " +
  "worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; " +
  "require-trusted-types-for 'script'";
const PAGE = '<!doctype html><title>console</title>';
const SCRIPT = 'console.log("a");';
const FILES = {
  'index.html': PAGE,
  'index.html.br': 'page, packed',
  'assets/app-1a2b.js': SCRIPT,
  'assets/app-1a2b.js.br': 'script, packed',
  'assets/app-3c4d.css': 'p {}',
  'secret.txt': 'hidden',
};

function assertHeaders({ headers }: { headers: Record<string, unknown> }, path: string): void {
  assert.is(headers['content-security-policy'], CSP, path);
  assert.is(headers['x-content-type-options'], 'nosniff', path);
  assert.is(headers['referrer-policy'], 'same-origin', path);
  assert.is(headers['cross-origin-opener-policy'], 'same-origin', path);
}

test('every path of the console is the page, which is never stored', async () => {
  await using console = await openConsole({ files: FILES });
  const paths = [
    ...['/console', '/console/', '/console/login', '/console/p/x', '/console/p/x/sessions/y?t=1'],
    ...['/console/p/x/assets', '/console/apiary', '/console/p/%2e%2e/%2e%2e/v1/sessions'],
  ];
  for (const path of paths) {
    const answer = await console.send('GET', path);
    assert.is(answer.status, 200, path);
    assert.is(answer.body.toString(), PAGE, path);
    assert.is(answer.headers['content-type'], 'text/html; charset=utf-8');
    assert.is(answer.headers['cache-control'], 'no-store');
    assertHeaders(answer, path);
  }
  const head = await console.send('HEAD', '/console/p/x');
  assert.equal([head.status, head.body.length], [200, 0]);
  assert.is(head.headers['content-length'], String(PAGE.length));
  const post = await console.send('POST', '/console/p/x');
  assert.equal([post.status, post.headers['allow']], [405, 'GET, HEAD']);
});

test('answers of the console have its headers, errors included; others have not', async () => {
  await using console = await openConsole({ files: FILES });
  const cookie = await console.logIn();
  assertHeaders(await console.browse('GET', '/console/api/v1/me', { cookie }), 'me');
  for (const path of ['/console/api/v1/me', '/console/api/v1/none', '/console/assets/none.js']) {
    const answer = await console.send('GET', path);
    assert.ok(answer.status >= 400, path);
    assertHeaders(answer, path);
  }
  const refused = await console.send('POST', '/console/login', { body: { apiKey: KEY } });
  assert.is(refused.status, 403);
  assertHeaders(refused, 'login');
  for (const path of ['/healthz', '/consoles']) {
    const { headers } = await console.send('GET', path);
    assert.is(headers['content-security-policy'], undefined, path);
  }
});

test('assets are immutable, and answer 304 to their tag', async () => {
  await using console = await openConsole({ files: FILES });
  const first = await console.send('GET', '/console/assets/app-1a2b.js');
  assert.is(first.status, 200);
  assert.is(first.body.toString(), SCRIPT);
  assert.is(first.headers['content-type'], 'text/javascript; charset=utf-8');
  assert.is(first.headers['cache-control'], 'public, max-age=31536000, immutable');
  assertHeaders(first, 'asset');
  const headers = { 'if-none-match': String(first.headers['etag']) };
  const again = await console.send('GET', '/console/assets/app-1a2b.js', { headers });
  assert.equal([again.status, again.body.length], [304, 0]);
  const other = await console.send('GET', '/console/assets/app-3c4d.css', { headers });
  assert.is(other.status, 200);
  assert.is(other.headers['content-type'], 'text/css; charset=utf-8');
});

test('brotli is sent to clients that accept it, under a tag of its own', async () => {
  await using console = await openConsole({ files: FILES });
  const accepted: [string | undefined, boolean][] = [
    [undefined, false],
    ['gzip, deflate', false],
    ['br;q=0', false],
    ['gzip, deflate, br, zstd', true],
  ];
  const tags = new Set<unknown>();
  for (const [coding, isPacked] of accepted) {
    const headers = coding === undefined ? {} : { 'accept-encoding': coding };
    const script = await console.send('GET', '/console/assets/app-1a2b.js', { headers });
    assert.is(script.headers['content-encoding'], isPacked ? 'br' : undefined, coding);
    assert.is(script.body.toString(), isPacked ? 'script, packed' : SCRIPT);
    assert.match(String(script.headers['vary']), /accept-encoding/i);
    tags.add(script.headers['etag']);
    const style = await console.send('GET', '/console/assets/app-3c4d.css', { headers });
    assert.is(style.headers['content-encoding'], undefined, 'there is no packed one');
    const page = await console.send('GET', '/console', { headers });
    assert.is(page.body.toString(), isPacked ? 'page, packed' : PAGE);
  }
  assert.is(tags.size, 2);
});

test('no path leads out of the folder of assets', async () => {
  await using console = await openConsole({ files: FILES });
  const names = [
    ...['../index.html', '..%2findex.html', '%2e%2e/secret.txt', '..%5csecret.txt', '.', '..', ''],
    ...['%2e%2e%2f%2e%2e%2fetc%2fpasswd', 'app-1a2b.js/', 'app-1a2b.js%00', '__proto__', 'none.js'],
    ...['app-1a2b.js.br', '%', '%ff', '/etc/passwd', 'deep/app-1a2b.js'],
  ];
  for (const name of names) {
    const answer = await console.send('GET', `/console/assets/${name}`);
    const isText = answer.body.includes('hidden') || answer.body.includes(SCRIPT);
    assert.not(isText, name);
    assert.ok([400, 404].includes(answer.status), `${name}: ${answer.status}`);
  }
});

test('/ leads to the console, but for a credential of a session', async () => {
  await using console = await openConsole({ files: FILES });
  const { status, headers } = await console.send('GET', '/');
  assert.equal([status, headers['location']], [302, '/console']);
  assert.is((await console.send('GET', '/?signingKey=x')).status, 426);
  assert.is((await console.send('GET', '/?apiKey=x')).status, 426);
});

test('without a built page its paths are unknown, and the API is served', async () => {
  await using console = await openConsole();
  assert.not(console.hasConsole);
  assert.equal(await statuses(console, ['/console', '/console/p/x', '/']), [404, 404, 404]);
  assert.is((await console.browse('GET', '/console/api/v1/me')).status, 401);
  await console.logIn();
});

test.run();

async function statuses(console: Console, paths: readonly string[]): Promise<number[]> {
  const answers = paths.map((path) => console.send('GET', path));
  return (await Promise.all(answers)).map(({ status }) => status);
}
