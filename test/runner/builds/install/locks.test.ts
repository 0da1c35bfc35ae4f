/** package.json and lock files may name no path outside the project and no git repository. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readProject } from '../../../../runner/builds/install/package-json.ts';
import { directory } from '../../../support/runner/project.ts';

const locks = suite('runner/builds/install/locks');
const OUTSIDE = /is outside the project/;
const GIT = /is a git repository/;
const OWN = { dependencies: { dep: 'file:./dep.tgz' } };

const json = (more: object): string => JSON.stringify({ ...OWN, ...more });
/** As pnpm 9 and 10 write it, with more lines, and the resolution of its one package. */
const v9 = (resolution: string, more = '', name = 'dep@file:dep.tgz'): string => `${more}
lockfileVersion: '9.0'
importers:
  .:
    dependencies:
      dep:
        specifier: file:./dep.tgz
        version: file:dep.tgz
packages:
  ${name}:
    resolution: ${resolution}
    deprecated: 'see github:a/b, file:/etc, ../../x'
snapshots:
  dep@file:dep.tgz: {}
`;
const GOOD = '{integrity: sha512-x, tarball: file:dep.tgz}';
const importer = (specifier: string, version: string, id = '.'): string => `
lockfileVersion: '9.0'
importers:
  ${id}:
    dependencies:
      x:
        specifier: ${specifier}
        version: ${version}
`;
const packages = (more: object): string => JSON.stringify({ lockfileVersion: 3, packages: more });

type Case = [what: string, file: string, text: string, why: RegExp];
const pnpm = (what: string, text: string, why = OUTSIDE): Case => {
  return [`pnpm: ${what}`, 'pnpm-lock.yaml', text, why];
};
const npm = (what: string, text: string, why = OUTSIDE): Case => {
  return [`npm: ${what}`, 'package-lock.json', text, why];
};
const own = (what: string, more: object, why = OUTSIDE): Case => {
  return [`package.json: ${what}`, 'package.json', json(more), why];
};

const REFUSED: Case[] = [
  pnpm('a directory that climbs', v9('{directory: ../../x, type: directory}')),
  pnpm('an absolute one', v9('{directory: /usr, type: directory}')),
  pnpm('one that climbs late', v9('{directory: a/b/../../../x, type: directory}')),
  pnpm('a tarball that climbs', v9("{tarball: 'file:../x.tgz'}")),
  pnpm('an absolute tarball', v9("{tarball: 'file:/usr/x.tgz'}")),
  pnpm('a tarball in capitals', v9("{tarball: 'FILE:/usr/x.tgz'}")),
  pnpm('a tarball with a tab inside', v9('{tarball: "fi\\tle:/usr/x.tgz"}')),
  pnpm('a tarball in escapes', v9('{tarball: "\\x66ile:/usr/x.tgz"}')),
  pnpm('a path in a tarball', v9("{tarball: 'https://a.example/x.tgz', path: /../../x}")),
  pnpm('git', v9('{type: git, repo: "https://a.example/x", commit: a}'), GIT),
  pnpm('git in quotes', v9('{"type": "git", repo: "https://a.example/x", commit: a}'), GIT),
  pnpm('git with spaces', v9('\n      type:    git\n      commit: a'), GIT),
  pnpm('git in escapes', v9('{type: "\\x67it", commit: a}'), GIT),
  pnpm('git as a list', v9('{type: [git]}'), GIT),
  pnpm('git without a type', v9('{repo: "https://a.example/x", commit: a}'), GIT),
  pnpm('a variant of git', v9('{type: variations, variants: [{resolution: {type: git}}]}'), GIT),
  pnpm('another fetcher', v9('{type: "custom:x"}'), /pnpm-lock\.yaml.*unknown/),
  pnpm('a key that climbs', v9(GOOD, '', "'dep@file:../x'")),
  pnpm('a key of git', v9(GOOD, '', "'dep@git+ssh://git@a.example/x#a'"), GIT),
  pnpm('a key with peers', v9(GOOD, '', "'dep@1.0.0(x@file:../y)'")),
  pnpm('a link', importer('link:../x', 'link:../x')),
  pnpm('an absolute version', importer('1.0.0', 'link:/usr')),
  pnpm('an aliased version', importer('1.0.0', "'real@file:../x'")),
  pnpm('a specifier', importer('/usr', '1.0.0')),
  pnpm('a specifier of git', importer('a/b', '1.0.0'), GIT),
  pnpm("another importer's link", importer('link:../../x', 'link:../../x', 'one')),
  pnpm('an importer that climbs', importer('1.0.0', '1.0.0', '../x')),
  pnpm('a snapshot', 'snapshots:\n  a@1.0.0:\n    dependencies:\n      deprecated: link:/usr\n'),
  pnpm('a package named specifier', 'dependencies: {specifier: {version: link:/usr}}'),
  pnpm('a package named resolution', 'dependencies: {resolution: {version: link:/usr}}'),
  pnpm('a package named deprecated', 'dependencies: {deprecated: link:/usr}'),
  pnpm('overrides', v9(GOOD, 'overrides:\n  x: link:/usr')),
  pnpm('catalogs', v9(GOOD, 'catalogs: {default: {x: {specifier: "link:/x", version: "1"}}}')),
  pnpm('a patch', v9(GOOD, 'patchedDependencies:\n  x: {hash: a, path: ../x.patch}')),
  pnpm('a patch of version 5', v9(GOOD, 'patchedDependencies:\n  x: /x.patch')),
  pnpm('version 5', 'lockfileVersion: 5.4\nspecifiers: {x: /usr}\ndependencies: {x: 1.0.0}'),
  pnpm('a version of 5', 'lockfileVersion: 5.4\ndependencies: {x: "file:../x"}'),
  pnpm('a key of 5', 'lockfileVersion: 5.4\npackages: {"file:../x": {resolution: {}}}'),
  pnpm('version 6', "lockfileVersion: '6.0'\ndependencies: {x: {specifier: ../x, version: '1'}}"),
  pnpm('the first document', `---\n${importer('/x', '1')}---\n${v9(GOOD)}`),
  pnpm('the second document', `---\n${v9(GOOD)}---\n${importer('/x', '1')}`),
  pnpm('three documents', 'a: 1\n---\nb: 1\n---\nc: 1\n', /pnpm-lock\.yaml/),
  pnpm('an alias', 'a: &a {x: 1}\nb: *a\n', /pnpm-lock\.yaml is not.*YAML/),
  pnpm('depth', '['.repeat(100_000), /pnpm-lock\.yaml is not.*YAML/),
  pnpm('no YAML', '<<<<<<< HEAD\na: 1\n=======\n>>>>>>> x', /pnpm-lock\.yaml is not.*YAML/),
  npm('a tarball', packages({ 'node_modules/x': { resolved: 'file:../../x.tgz' } })),
  npm('a tarball by a path', packages({ 'node_modules/x': { resolved: 'a/../../usr/x.tgz' } })),
  npm('a link', packages({ 'node_modules/x': { resolved: '../x', link: true } })),
  npm('an absolute link', packages({ 'node_modules/x': { resolved: '/usr', link: true } })),
  npm('a folder', packages({ '../x': { version: '1.0.0' } })),
  npm('a folder below', packages({ 'node_modules/../../x': { version: '1.0.0' } })),
  npm("a package's", packages({ one: { dependencies: { x: 'file:../../x' } } })),
  npm('version 1', JSON.stringify({ dependencies: { x: { version: 'file:../x.tgz' } } })),
  npm('git of 1', JSON.stringify({ dependencies: { x: { version: 'git+ssh://a/x' } } }), GIT),
  npm(
    'version 1, below',
    JSON.stringify({ dependencies: { a: { dependencies: { x: { resolved: 'file:/x.tgz' } } } } }),
  ),
  own('a path with a folder first', { dependencies: { x: 'a/../../../usr/x.tgz' } }),
  own('overrides', { overrides: { x: 'file:/usr' } }),
  own('overrides below', { overrides: { x: { '.': '1', y: 'file:../x' } } }),
  own('overrides of git', { overrides: { x: 'github:a/b' } }, GIT),
  own('resolutions', { resolutions: { x: 'link:/usr' } }),
  own("pnpm's overrides", { pnpm: { overrides: { x: 'link:../x' } } }),
  own("pnpm's extensions", {
    pnpm: { packageExtensions: { x: { dependencies: { y: 'file:/usr' } } } },
  }),
  own("pnpm's patches", { pnpm: { patchedDependencies: { x: '../x.patch' } } }),
  own('workspaces', { workspaces: ['../*'] }),
  own('workspaces in an object', { workspaces: { packages: ['/usr/*'] } }),
];

for (const [what, file, text, why] of REFUSED) {
  locks(`refused: ${what}`, async () => {
    await using dir = directory({ 'package.json': json({}), [file]: text });
    const error = await readProject(dir.path).catch((caught: Error) => caught);
    assert.instance(error, Error);
    assert.is((error as Error).name, 'BuildFailure');
    assert.match((error as Error).message, why);
  });
}

const WORKSPACE = `
importers:
  .: {dependencies: {a: {specifier: 'workspace:*', version: 'link:one/a'}}}
  one/a: {dependencies: {b: {specifier: 'link:../b', version: 'link:../b'}}}
`;
const REGISTRY = `
packages:
  git@0.1.5: {resolution: {integrity: sha512-x}, engines: {node: '>=18'}}
  '@a/b@1.0.0': {resolution: {integrity: sha512-a/b+c==, tarball: https://a.example/-/b.tgz}}
  /c/1.0.0: {resolution: {integrity: sha512-x}}
  x@https://codeload.github.com/a/b/tar.gz/0:
    resolution: {tarball: https://codeload.github.com/a/b/tar.gz/0}
snapshots:
  git@0.1.5: {dependencies: {real: other@1.0.0(git@0.1.5)}}
`;
const TAKEN: [what: string, file: string, text: string][] = [
  ['a tarball', 'pnpm-lock.yaml', v9(GOOD)],
  ['a folder', 'pnpm-lock.yaml', v9('{directory: packages/x, type: directory}')],
  ['a workspace', 'pnpm-lock.yaml', WORKSPACE],
  ['packages of a registry', 'pnpm-lock.yaml', REGISTRY],
  ['two documents', 'pnpm-lock.yaml', `---\n${REGISTRY}---\n${v9(GOOD)}`],
  [
    'a workspace of npm',
    'package-lock.json',
    packages({
      '': { workspaces: ['packages/*'] },
      'packages/a': { dependencies: { b: 'file:../b' } },
      'node_modules/a': { resolved: 'packages/a', link: true },
    }),
  ],
  [
    'overrides',
    'package.json',
    json({ overrides: { a: '1', b: { c: '$dep' } }, workspaces: ['./packages/*'] }),
  ],
];
for (const [what, file, text] of TAKEN) {
  locks(`accepted: ${what}`, async () => {
    await using dir = directory({ 'package.json': json({}), [file]: text });
    assert.is((await readProject(dir.path))?.dependencies.includes('dep'), true);
  });
}

for (const sdk of ['tabern', '@tabern/functions']) {
  locks(`pnpm reads the checked lock file, without ${sdk}`, async () => {
    const lock = v9(GOOD).replace(
      '    dependencies:\n',
      `    dependencies:\n      '${sdk}': {specifier: 'file:../t', version: 'file:../t'}\n`,
    );
    const withSdk = `${lock}  '${sdk}@file:../t': {}\n`;
    await using dir = directory({
      'package.json': json({ dependencies: { ...OWN.dependencies, [sdk]: 'file:../t' } }),
      'pnpm-lock.yaml': withSdk,
    });
    assert.is((await readProject(dir.path))?.isDropped, true);
    const text = readFileSync(join(dir.path, 'pnpm-lock.yaml'), 'utf8');
    assert.not.match(text, 'tabern');
    const deprecated = 'see github:a/b, file:/etc, ../../x';
    assert.equal(load(text), {
      lockfileVersion: '9.0',
      importers: {
        '.': { dependencies: { dep: { specifier: 'file:./dep.tgz', version: 'file:dep.tgz' } } },
      },
      packages: {
        'dep@file:dep.tgz': {
          resolution: { integrity: 'sha512-x', tarball: 'file:dep.tgz' },
          deprecated,
        },
      },
      snapshots: { 'dep@file:dep.tgz': {} },
    });
  });

  locks(`npm reads the checked lock file, without a directory linked as ${sdk}`, async () => {
    const dependencies = { ...OWN.dependencies, [sdk]: 'file:../tabern/dist' };
    await using dir = directory({
      'package.json': json({ dependencies }),
      'package-lock.json': packages({
        '': { dependencies },
        '../tabern/dist': { name: sdk, version: '1.0.0' },
        [`node_modules/${sdk}`]: { resolved: '../tabern/dist', link: true },
      }),
    });
    assert.equal((await readProject(dir.path))?.dependencies, ['dep']);
    const lock = JSON.parse(readFileSync(join(dir.path, 'package-lock.json'), 'utf8'));
    assert.equal(lock.packages, { '': OWN });
  });

  locks(`npm reads the checked lock file, without ${sdk}`, async () => {
    const dependencies = { ...OWN.dependencies, [sdk]: 'file:../t.tgz' };
    await using dir = directory({
      'package.json': json({ dependencies }),
      'package-lock.json': packages({
        '': { dependencies },
        'node_modules/dep': { resolved: 'file:dep.tgz' },
        [`node_modules/${sdk}`]: { resolved: 'file:../t.tgz' },
        [`node_modules/${sdk}/node_modules/below`]: { version: '1.0.0' },
        [`node_modules/${sdk}-other`]: { version: '1.0.0' },
      }),
    });
    assert.equal((await readProject(dir.path))?.dependencies, ['dep']);
    const lock = JSON.parse(readFileSync(join(dir.path, 'package-lock.json'), 'utf8'));
    assert.equal(lock.packages, {
      '': OWN,
      'node_modules/dep': { resolved: 'file:dep.tgz' },
      [`node_modules/${sdk}-other`]: { version: '1.0.0' },
    });
  });
}

locks.run();
