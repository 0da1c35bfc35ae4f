/** Through the installer: no other program may run. */
import {
  BUILT,
  type BuildAttack,
  EVIL_JS,
  EVIL_PATH,
  packed,
  unbuilt,
} from '../lab/build-attack.ts';

const USES = `import './evidence.js';`;
const manifest = (more: object): string => JSON.stringify({ private: true, ...more });
const RUN = 'sh "$HOME/../project/evil.sh"';
const scripts = { preinstall: RUN, install: RUN, postinstall: RUN, prepare: RUN };
const lock = (packages: object): string => JSON.stringify({ lockfileVersion: 3, packages });
const PACKED = { dependencies: { packed: 'file:./packed.tgz' } };
/** Of a tarball of the project, as pnpm locks it. */
const PNPM_LOCK = `lockfileVersion: '9.0'
importers:
  .:
    dependencies:
      packed:
        specifier: file:./packed.tgz
        version: file:packed.tgz
packages:
  packed@file:packed.tgz:
    resolution: {integrity: INTEGRITY, tarball: file:packed.tgz}
    version: 1.0.0
snapshots:
  packed@file:packed.tgz: {}
`;

/** A lock file of pnpm with one package of this resolution. */
const pnpmLock = (resolution: string): string => `lockfileVersion: '9.0'
importers:
  .:
    dependencies:
      dep:
        specifier: file:./dep
        version: file:dep
packages:
  dep@file:dep:
    resolution: ${resolution}
snapshots:
  dep@file:dep: {}
`;
const DEP = { dependencies: { dep: 'file:./dep' } };
const OUTSIDE = unbuilt(/is outside the project/);

export const installs: readonly BuildAttack[] = [
  {
    name: "run a script of a package, and of the project's own",
    files: () => ({ 'index.ts': USES, 'package.json': manifest({ scripts, ...PACKED }) }),
    prepare: (dir) => packed(dir, { manifest: { scripts } }),
    ending: BUILT,
  },
  {
    name: 'run git by a git dependency',
    files: ({ url }) => ({
      'index.ts': USES,
      'package.json': manifest({ dependencies: { one: `git+${url}one.git` } }),
    }),
    hasRepository: true,
    ending: unbuilt(/"one" is a git repository/),
  },
  {
    name: 'run git by a dependency of a package',
    files: () => ({ 'index.ts': USES, 'package.json': manifest(PACKED) }),
    prepare: (dir, { url }) =>
      packed(dir, { manifest: { dependencies: { one: `git+${url}one.git` } } }),
    hasRepository: true,
    ending: unbuilt(/cannot be installed/),
  },
  {
    name: 'run git by a lock file',
    files: ({ url }) => ({
      'index.ts': USES,
      'package.json': manifest({ dependencies: { one: '1.0.0' } }),
      'package-lock.json': lock({
        '': { dependencies: { one: '1.0.0' } },
        'node_modules/one': { version: '1.0.0', resolved: `git+${url}one.git#${'0'.repeat(40)}` },
      }),
    }),
    hasRepository: true,
    ending: unbuilt(/"node_modules\/one" is a git repository/),
  },
  {
    name: "run git by the SDK's entry of a lock file",
    files: ({ url }) => ({
      'index.ts': USES,
      'package.json': manifest(PACKED),
      'package-lock.json': lock({
        '': PACKED,
        'node_modules/packed': { version: '1.0.0', resolved: 'file:packed.tgz' },
        'node_modules/tabern': { version: '1.0.0', resolved: `git+${url}one.git` },
      }),
    }),
    prepare: (dir) => packed(dir, {}),
    hasRepository: true,
    ending: unbuilt(/"node_modules\/tabern" is a git repository/),
  },
  {
    name: 'run git by a lock file of pnpm',
    files: ({ url }) => ({
      'index.ts': USES,
      'package.json': manifest({ dependencies: { one: `git+${url}one.git` } }),
      'pnpm-lock.yaml': `lockfileVersion: '9.0'
packages:
  one@git:
    resolution: {commit: a, repo: ${url}one.git, type: git}
`,
    }),
    hasRepository: true,
    ending: unbuilt(/is a git repository/),
  },
  {
    name: "set programs in npm's settings: git, script-shell, node-gyp",
    files: () => {
      const named = ['git', 'script-shell', 'node-gyp'].map((name) => `${name}=${EVIL_PATH}`);
      const settings = [...named, 'ignore-scripts=false', ''].join('\n');
      return {
        'index.ts': USES,
        '.npmrc': settings,
        'packages/inner/.npmrc': settings,
        'package.json': manifest({ scripts, ...PACKED }),
      };
    },
    prepare: (dir) => packed(dir, { manifest: { gypfile: true }, files: { 'binding.gyp': '{}' } }),
    ending: BUILT,
  },
  {
    name: 'use a hook of pnpm, its settings, another version of it',
    files: () => ({
      'index.ts': USES,
      '.pnpmfile.cjs': EVIL_JS,
      '.pnpmfile.mjs': EVIL_JS,
      'pnpm-workspace.yaml': [
        'pnpmfile: .pnpmfile.cjs',
        'configDependencies: {evil: "1.0.0+sha512-AAAA"}',
        `scriptShell: ${EVIL_PATH}`,
        'dangerouslyAllowAllBuilds: true',
      ].join('\n'),
      'package.json': manifest({
        scripts,
        packageManager: 'pnpm@9.0.0',
        ...PACKED,
        devEngines: { packageManager: { name: 'pnpm', version: '9.0.0', onFail: 'download' } },
        pnpm: { onlyBuiltDependencies: ['packed'] },
      }),
      'pnpm-lock.yaml': PNPM_LOCK,
    }),
    prepare: (dir) => packed(dir, { manifest: { scripts }, isLocked: true }),
    ending: BUILT,
  },
  {
    name: 'read a file of the machine as a tarball',
    files: ({ canary }) => ({
      'index.ts': USES,
      'package.json': manifest({ dependencies: { x: `file:${canary}` } }),
    }),
    ending: unbuilt(/is outside the project/),
  },
  ...['/usr/share', '../../../../etc/ssl', '/installer/user', '/build/home'].map(
    (folder): BuildAttack => ({
      name: `copy ${folder} of the installer's jail by a lock file of pnpm`,
      files: () => ({
        'index.ts': USES,
        'package.json': manifest(DEP),
        'pnpm-lock.yaml': pnpmLock(`{directory: ${folder}, type: directory}`),
        'dep/package.json': '{"name":"dep","version":"1.0.0"}',
      }),
      ending: OUTSIDE,
    }),
  ),
  {
    name: 'read a tarball of the jail by escapes in a lock file of pnpm',
    files: () => ({
      'index.ts': USES,
      'package.json': manifest(DEP),
      'pnpm-lock.yaml': pnpmLock('{tarball: "\\x66i\\tle:/usr/share/x.tgz"}'),
    }),
    ending: OUTSIDE,
  },
  {
    name: 'run git by quotes and escapes in a lock file of pnpm',
    files: ({ url }) => ({
      'index.ts': USES,
      'package.json': manifest(DEP),
      'pnpm-lock.yaml': pnpmLock(`{"type": "\\x67it", repo: "${url}one.git", commit: a}`),
    }),
    hasRepository: true,
    ending: unbuilt(/is a git repository/),
  },
  {
    name: 'copy a directory of the jail by an override in package.json',
    files: () => ({
      'index.ts': USES,
      'package.json': manifest({ ...PACKED, pnpm: { overrides: { packed: 'file:/usr/share' } } }),
      'pnpm-lock.yaml': PNPM_LOCK,
    }),
    prepare: (dir) => packed(dir, { isLocked: true }),
    ending: OUTSIDE,
  },
  {
    name: 'read a tarball of the jail by a lock file of npm 1',
    files: () => ({
      'index.ts': USES,
      'package.json': manifest({ dependencies: { x: '1.0.0' } }),
      'package-lock.json': JSON.stringify({
        lockfileVersion: 1,
        dependencies: { x: { version: 'file:../../../usr/share/x.tgz' } },
      }),
    }),
    ending: OUTSIDE,
  },
  {
    name: "bundle npm's settings",
    files: () => ({
      'index.ts': `import text from 'packed/.npmrc' with { type: 'text' };
        console.log(text); ${USES}`,
      'package.json': manifest(PACKED),
    }),
    prepare: (dir) => packed(dir, { files: { '.npmrc': 'a=CANARY-of-the-machine' } }),
    ending: unbuilt(/may hold a token/),
  },
];
