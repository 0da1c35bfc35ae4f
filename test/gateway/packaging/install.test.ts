/** The files of this repository that an older npm reads: the lock file, .npmrc, the package. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import { equal, is, not } from 'uvu/assert';

const ROOT = join(import.meta.dirname, '../../..');
type Manifest = {
  gypfile?: boolean;
  inBundle?: boolean;
  engines?: { node?: string };
  dependencies?: Record<string, string>;
};

const install = suite('gateway/packaging/install');

function read(path: string): Manifest & { packages?: Record<string, Manifest> } {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'));
}

function packages(): [string, Manifest][] {
  return Object.entries(read('package-lock.json').packages ?? {}).slice(1);
}

function isCompiled(path: string): boolean {
  return existsSync(join(ROOT, path, 'binding.gyp'));
}

install('no package is compiled: npm 9 to 11 read `gypfile` from the lock file alone', () => {
  const native = packages().filter(([path]) => isCompiled(path));
  not.equal(native, [], 'better-sqlite3 at least');
  for (const [path, entry] of native) is(entry.gypfile, false, `${path}: npm run prepare`);
});

install(
  'packages with a binding.gyp are inside the published package, with their manifests',
  () => {
    // the registry's short manifests have no `gypfile`; those of bundled packages come from disk
    const shipped = Object.keys(read('package.json').dependencies ?? {});
    const native = packages().filter(([path]) => {
      return isCompiled(path) && shipped.includes(path.replace('node_modules/', ''));
    });
    equal(
      native.filter(([, { inBundle }]) => inBundle !== true).map(([path]) => path),
      [],
    );
  },
);

install('npm is silent about the Node of the machine, and so is our own manifest', () => {
  is(/^loglevel=error$/m.test(readFileSync(join(ROOT, '.npmrc'), 'utf8')), true);
  is(read('package.json').engines?.node, '>=18');
});

install.run();
