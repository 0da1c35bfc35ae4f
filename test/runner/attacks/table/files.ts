/** Reading foreign files, writing outside its mounts, filling shared space. */
import { type Attack, fails, refused } from '../lab/attack.ts';

const fill = (dir: string): string => `
  const { writeFileSync } = builtin('fs');
  return { fill: await attempt(() => {
    for (let i = 0; i < 9; i++) writeFileSync(${dir} + '/fill' + i, Buffer.alloc(16 << 20, 1));
    return 'filled';
  }) };`;
const read = (...paths: string[]): string => `
  const { readFileSync, readdirSync, statSync } = builtin('fs');
  const get = (path) => statSync(path).isDirectory() ? readdirSync(path) : readFileSync(path);
  return all(Object.fromEntries([${paths.join()}].map((path) => [path, () => get(path)])));`;

export const files: readonly Attack[] = [
  {
    name: 'read the database and the keys of the service',
    body: read('params.secret', 'params.dataDir'),
    ending: refused,
    hasControl: true,
  },
  {
    name: 'read /etc/shadow',
    body: read("'/etc/shadow'"),
    ending: refused,
  },
  {
    name: 'read public files: /etc/passwd, /home, /var',
    body: read("'/etc/passwd'", "'/home'", "'/var'", "'/usr/share'", "'/sys/kernel'"),
    ending: refused,
    hasControl: true,
  },
  {
    name: 'read the environment and the descriptors of a process of the service',
    body: read("'/proc/' + params.pid + '/environ'", "'/proc/' + params.pid + '/fd'"),
    ending: refused,
    hasControl: true,
  },
  {
    name: 'open the memory of a process of the service',
    body: `const { openSync } = builtin('fs');
      return all({ read: () => openSync('/proc/' + params.pid + '/mem', 'r'),
        write: () => openSync('/proc/' + params.pid + '/mem', 'r+') });`,
    ending: refused,
  },
  {
    name: 'leave the jail through /proc/*/root and /proc/*/cwd',
    body: read(
      ...["'/proc/1/root/etc/passwd'", "'/proc/self/root/etc/passwd'"],
      ...["'/proc/self/cwd/../../../../../etc/passwd'", "'/proc/thread-self/root/etc/shadow'"],
    ),
    ending: refused,
  },
  {
    name: 'follow a link of its own',
    body: `const { symlinkSync, readFileSync } = builtin('fs');
      const link = process.env.TMPDIR + '/link';
      symlinkSync('/etc/passwd', link);
      return all({ link: () => readFileSync(link) });`,
    ending: refused,
    deno: fails(/symlinkSync\(\) requires unscoped/),
    hasControl: true,
  },
  {
    name: "read other projects' bundles and other files of the runner",
    body: read('params.runDir', "params.runDir + '/h1'", "params.runDir + '/h1/fn'"),
    ending: refused,
    hasControl: true,
  },
  {
    name: 'read the secrets of a function of another project',
    body: `const { readFileSync, readdirSync } = builtin('fs');
      const victim = ['a-secret', 'of-the-victim'].join('-');
      const search = (texts) => {
        const found = texts.filter((text) => text.includes(victim));
        if (found.length === 0) throw new Error('nothing');
        return found[0];
      };
      const readable = (path) => {
        try { return readFileSync(path, 'latin1'); } catch { return ''; }
      };
      const below = (dir) => readdirSync(dir, { recursive: true }).map((name) => dir + '/' + name);
      const pids = () => readdirSync('/proc').filter(Number).flatMap((pid) =>
        ['environ', 'cmdline'].map((file) => '/proc/' + pid + '/' + file));
      return all({
        ctx: () => search([ctx.secrets.VICTIM ?? '', ...Object.values(ctx.secrets)]),
        env: () => search(Object.values(process.env)),
        args: () => search([...process.argv, ...process.execArgv]),
        files: () => search(below(params.runDir).map(readable)),
        temporary: () => search(below(process.env.TMPDIR).map(readable)),
        processes: () => search(pids().map(readable)),
      });`,
    ending: refused,
  },
  {
    name: 'find such a secret in the memory of the runner and of other hosts',
    body: `const { openSync, readSync, readFileSync, readdirSync } = builtin('fs');
      const victim = ['a-secret', 'of-the-victim'].join('-');
      const part = Buffer.alloc(1 << 20);
      const search = (pid) => {
        const memory = openSync('/proc/' + pid + '/mem');
        const read = (at, end) => {
          try { return readSync(memory, part, 0, Math.min(part.length, end - at), at); }
          catch { return 0; }
        };
        for (const line of readFileSync('/proc/' + pid + '/maps', 'latin1').split('\\n')) {
          const [begin, end] = (/^(\\w+-\\w+) rw/.exec(line)?.[1] ?? '').split('-')
            .map((text) => parseInt(text, 16));
          for (let at = begin; at < end; at += part.length - victim.length) {
            const length = read(at, end);
            if (length === 0) break;
            if (part.subarray(0, length).includes(victim)) return 'found';
          }
        }
        throw new Error('nothing');
      };
      const parentOf = (pid) => {
        try {
          const stat = readFileSync('/proc/' + pid + '/stat', 'latin1');
          return Number(stat.split(') ')[1].split(' ')[1]);
        }
        catch { return 0; }
      };
      const hosts = () => readdirSync('/proc').map(Number)
        .filter((pid) => pid !== process.pid && parentOf(pid) === params.pid);
      const found = (pid) => {
        try { return search(pid); } catch { return undefined; }
      };
      return all({ runner: () => search(params.pid),
        hosts: () => {
          if (!hosts().some(found)) throw new Error('nothing');
          return 'found';
        } });`,
    ending: refused,
    hasControl: true,
  },
  {
    name: 'find the existence, size and age of files',
    body: `const { statSync } = builtin('fs');
      return all({ mine: () => statSync(params.secret), users: () => statSync('/etc/shadow') });`,
    ending: refused,
    landlock: { type: 'open', why: 'size, times and owner of a known path' },
    hasControl: true,
  },
  {
    name: 'change the code of its host, and its own bundle',
    body: `const { openSync } = builtin('fs');
      const paths = [process.execPath, process.argv[1], new URL(import.meta.url).pathname];
      return all(Object.fromEntries(paths.map((path) => [path, () => openSync(path, 'a')])));`,
    ending: refused,
  },
  {
    name: 'leave files on the machine',
    body: `const { writeFileSync } = builtin('fs');
      const dirs = ['/', '/etc', '/var/tmp', '/dev', '/run', '/usr/bin', params.dataDir];
      return all(Object.fromEntries(dirs.map((dir) => [dir,
        () => writeFileSync(dir + '/tabern-attack', '')])));`,
    ending: refused,
  },
  {
    name: 'change modes, times and owners of files of the service',
    body: `const fs = builtin('fs');
      return all({ mode: () => fs.chmodSync(params.secret, 0o600),
        time: () => fs.utimesSync(params.secret, 1, 1),
        owner: () => fs.chownSync(params.secret, process.getuid(), process.getgid()) });`,
    ending: refused,
    hasControl: true,
  },
  {
    name: 'fill the disk through its temporary directory',
    body: fill('process.env.TMPDIR'),
    ending: refused,
    landlock: { type: 'open', why: '64 MiB per file, any number of files' },
  },
  {
    name: 'fill the shared memory of the machine',
    body: fill("'/dev/shm'"),
    ending: refused,
  },
  {
    name: 'write one endless file',
    body: `const fs = builtin('fs');
      const file = fs.openSync(process.env.TMPDIR + '/endless', 'w');
      return all({ write: () => {
        for (let i = 0; i < 160; i++) fs.writeSync(file, Buffer.alloc(1 << 20, 1));
      } });`,
    ending: refused,
  },
];
