/** The built console: its size, its names, and what its page may contain. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { suite } from 'uvu';
import { equal, is, ok } from 'uvu/assert';
import { buildConsole } from '../../../gateway/packaging/console.ts';
import { must } from '../../../proto/common/must.ts';
import { tempDirectory } from '../../support/temp.ts';

const built = suite('gateway/packaging/console');

/** Ours, in bytes of brotli: a first load over a slow network, and all of it. */
const FIRST_LOAD_MAX = 60_000;
const ALL_MAX = 160_000;
const FILES_MAX = 12;

built('the first load and the whole console are within their limits', async () => {
  await using dir = tempDirectory();
  await buildConsole(dir.path);
  const page = readFileSync(join(dir.path, 'index.html'), 'utf8');
  const urls = [...page.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, url = '']) => url);
  for (const url of urls)
    ok(/^\/console\/assets\/[a-z]+-[A-Z0-9]{8}\.(?:js|css|svg)$/.test(url), url);
  const first = loadedWith(urls.map((url) => join(dir.path, url.replace('/console/', ''))));
  ok(first.length <= FILES_MAX);
  const firstBytes = sizeOf([join(dir.path, 'index.html'), ...first].map((path) => `${path}.br`));
  ok(firstBytes <= FIRST_LOAD_MAX, `${firstBytes} bytes`);
  const assets = readdirSync(join(dir.path, 'assets')).map((name) =>
    join(dir.path, 'assets', name),
  );
  const all = sizeOf(assets.filter((path) => path.endsWith('.br')));
  ok(all <= ALL_MAX, `${all} bytes`);
});

built('each file has a brotli copy, and names no other origin, eval or HTML text', async () => {
  await using dir = tempDirectory();
  await buildConsole(dir.path);
  const names = readdirSync(join(dir.path, 'assets')).filter((name) => !name.endsWith('.br'));
  equal(
    [...new Set(names.map((name) => name.split('-')[0]))],
    ['changes', 'console', 'dev', 'icon', 'log', 'part', 'style'],
  );
  for (const name of names) {
    const bytes = readFileSync(join(dir.path, 'assets', name));
    const copy = readFileSync(join(dir.path, 'assets', `${name}.br`));
    is(brotliDecompressSync(copy).equals(bytes), true, name);
    const text = bytes.toString();
    const loads = text.match(/\b(?:import|url)\(\s*["']?https?:[^)]*/g);
    is(loads, null, name);
    is(/\beval\(|new Function\(/.test(text), false, name);
  }
  for (const name of ['index.html', 'dev.html']) {
    const page = readFileSync(join(dir.path, name), 'utf8');
    is(/<script(?![^>]*src=)|<style|style=|\son\w+=/.test(page), false, name);
  }
});

built('a second build has the same names', async () => {
  await using dir = tempDirectory();
  await buildConsole(dir.path);
  const before = readdirSync(join(dir.path, 'assets'));
  await buildConsole(dir.path);
  equal(readdirSync(join(dir.path, 'assets')), before);
  must(before[0], 'an asset');
});

built.run();

/** These files, and all that their scripts import at once. */
function loadedWith(paths: readonly string[]): string[] {
  const found = new Set(paths);
  for (const path of found) {
    if (!path.endsWith('.js')) continue;
    const imports = readFileSync(path, 'utf8').matchAll(/(?:from|import)"\.\/(part-\w+\.js)"/g);
    for (const [, name = ''] of imports) found.add(join(dirname(path), name));
  }
  return [...found];
}

function sizeOf(paths: readonly string[]): number {
  return paths.reduce((sum, path) => sum + statSync(path).size, 0);
}
