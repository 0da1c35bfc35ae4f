/**
 * The filter as the kernel reads it: interpreted here for both architectures, and run by the kernel
 * of this machine in a real jail, where Perl makes the raw calls.
 */
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLog } from '../../../../proto/common/log.ts';
import { type Profile, seccompFilter } from '../../../../runner/jail/backends/seccomp.ts';
import { AUDIT, numberOf, SYSCALLS } from '../../../../runner/jail/backends/syscalls.ts';
import { openJail } from '../../../../runner/jail/open.ts';
import { findProgram } from '../../../../runner/jail/prlimit.ts';
import { programMounts } from '../../../../runner/jail/program-mounts.ts';

const test = suite('runner/jail/backends/seccomp');
const { EPERM, ENOSYS, EAFNOSUPPORT } = constants.errno;
const THREADS: Profile = { processes: false, namespaces: false, isBare: false, modes: false };
const INSTALL: Profile = { ...THREADS, processes: true };
const CHROME: Profile = { ...INSTALL, namespaces: true };
const BARE: Profile = { ...THREADS, isBare: true };
const BARE_INSTALL: Profile = { ...INSTALL, isBare: true, modes: true };
const ARCHITECTURES = ['x64', 'arm64'] as const;
const VSOCK = 40;
const PTHREAD = 0x3d0f00; // the flags of glibc's pthread_create
const FORK = 0x1200011;

type Call = { architecture: number; number: number; args?: number[] };

/** The verdict: 0 for allowed, an errno, or -1 for the end of the process. */
function judge(filter: Buffer, { architecture, number, args = [] }: Call): number {
  const facts = new Map([
    [0, number],
    [4, architecture],
    ...args.map((value, index): [number, number] => [16 + 8 * index, value]),
  ]);
  let held = 0;
  for (let at = 0; ; at += 8) {
    const [code, operand] = [filter.readUInt16LE(at), filter.readUInt32LE(at + 4)];
    const jump = (isSo: boolean): number => filter.readUInt8(at + (isSo ? 2 : 3)) * 8;
    if (code === 0x20) held = facts.get(operand) ?? 0;
    else if (code === 0x54) held = (held & operand) >>> 0;
    else if (code === 0x15) at += jump(held === operand);
    else if (code === 0x35) at += jump(held >= operand);
    else if (operand === 0x80000000) return -1;
    else return operand === 0x7fff0000 ? 0 : operand & 0xffff;
  }
}

const ROWS: [string, string, number[], [number, number, number, number]][] = [
  // threads, install, Chrome, bare
  ['a thread', 'clone', [PTHREAD], [0, 0, 0, 0]],
  ['a child', 'clone', [FORK], [EPERM, 0, 0, EPERM]],
  ['a child in a user namespace', 'clone', [FORK | 0x10000000], [EPERM, EPERM, 0, EPERM]],
  ['a child by the newer call', 'clone3', [], [ENOSYS, ENOSYS, ENOSYS, ENOSYS]],
  ['unshare', 'unshare', [], [EPERM, EPERM, 0, EPERM]],
  ['setuid', 'setuid', [], [EPERM, EPERM, 0, EPERM]],
  ['mount', 'mount', [], [EPERM, EPERM, EPERM, EPERM]],
  ['ptrace', 'ptrace', [], [EPERM, EPERM, EPERM, EPERM]],
  ['bpf', 'bpf', [], [EPERM, EPERM, EPERM, EPERM]],
  ['a unix socket', 'socket', [1, 1, 0], [0, 0, 0, EAFNOSUPPORT]],
  ['a TCP socket', 'socket', [2, 1 | 0x80800, 0], [0, 0, 0, 0]],
  ['a TCP socket of v6', 'socket', [10, 1, 6], [0, 0, 0, 0]],
  ['a UDP socket', 'socket', [2, 2, 0], [0, 0, 0, EAFNOSUPPORT]],
  ['an MPTCP socket', 'socket', [2, 1, 262], [0, 0, 0, EAFNOSUPPORT]],
  ['netlink', 'socket', [16, 3, 0], [0, 0, EAFNOSUPPORT, EAFNOSUPPORT]],
  ['vsock', 'socket', [VSOCK, 1, 0], Array(4).fill(EAFNOSUPPORT) as [0, 0, 0, 0]],
  ['typing into a terminal', 'ioctl', [0, 0x5412], [EPERM, EPERM, EPERM, EPERM]],
  ['asking for a window size', 'ioctl', [0, 0x5413], [0, 0, 0, 0]],
  ['data that connects', 'sendto', [3, 0, 0, 0x20000040], [0, 0, 0, EPERM]],
  ['data', 'sendto', [3, 0, 0, 0x4040], [0, 0, 0, 0]],
  ['its own limits', 'prlimit64', [0], [0, 0, 0, 0]],
  ['limits of another', 'prlimit64', [4711], [0, 0, 0, EPERM]],
  ['a signal', 'kill', [4711], [0, 0, 0, EPERM]],
];

for (const architecture of ARCHITECTURES) {
  test(`${architecture}: each profile allows the needed calls, and no others`, () => {
    const filters = [THREADS, INSTALL, CHROME, BARE].map((profile) => {
      return seccompFilter(profile, architecture);
    });
    for (const [title, name, args, verdicts] of ROWS) {
      const number = numberOf(name, architecture);
      assert.type(number, 'number', `${title}: ${name}`);
      const call = { architecture: AUDIT[architecture], number: Number(number), args };
      assert.equal(
        filters.map((filter) => judge(filter, call)),
        verdicts,
        title,
      );
    }
  });

  test(`${architecture}: a bare installer sets modes, and has TCP only`, () => {
    const filters = [BARE, BARE_INSTALL].map((profile) => seccompFilter(profile, architecture));
    for (const [name, args, verdicts] of [
      ['fchmod', [], [EPERM, 0]],
      ['fchmodat', [], [EPERM, 0]],
      ['utimensat', [], [EPERM, 0]],
      ['fchownat', [], [EPERM, EPERM]],
      ['listen', [], [EPERM, EPERM]],
      ['clone', [FORK], [EPERM, 0]],
      ['socket', [1, 1, 0], [EAFNOSUPPORT, EAFNOSUPPORT]],
      ['socket', [2, 2, 0], [EAFNOSUPPORT, EAFNOSUPPORT]],
      ['socket', [2, 1, 0], [0, 0]],
      ['sendto', [3, 0, 0, 0x20000040], [EPERM, EPERM]],
    ] as [string, number[], [number, number]][]) {
      const number = Number(numberOf(name, architecture));
      const call = { architecture: AUDIT[architecture], number, args };
      const found = filters.map((filter) => judge(filter, call));
      assert.equal(found, verdicts, `${name} ${args.join()}`);
    }
  });

  test(`${architecture}: numbers of another architecture end the process`, () => {
    const filter = seccompFilter(CHROME, architecture);
    const own = AUDIT[architecture];
    assert.is(judge(filter, { architecture: 0x40000003, number: 20 }), -1);
    assert.is(judge(filter, { architecture: own, number: 0x40000000 + 57 }), -1);
    assert.is(judge(filter, { architecture: own, number: 1 }), 0);
  });

  test(`${architecture}: numbers of calls are unique`, () => {
    const numbers = [...SYSCALLS.values()].flatMap((own) => own[architecture] ?? []);
    assert.is(new Set(numbers).size, numbers.length);
  });
}

test("every number equals the kernel's", () => {
  const lines = readFileSync(new URL('../numbers.txt', import.meta.url), 'utf8')
    .trim()
    .split('\n');
  const words = lines.filter((line) => !line.startsWith('#')).map((line) => line.split(' '));
  const kernels = new Map(words.map(([name, x64, arm64]) => [name, { x64, arm64 }]));
  for (const name of SYSCALLS.keys()) {
    for (const architecture of ARCHITECTURES) {
      const ours = String(numberOf(name, architecture) ?? '-');
      assert.is(ours, kernels.get(name)?.[architecture], `${name} of ${architecture}`);
    }
  }
});

test('an architecture without a table has no filter', () => {
  assert.throws(() => seccompFilter(THREADS, 'riscv64'), /riscv64/);
});

const CALLS = {
  fork: [],
  unshare: [0x10000000],
  ptrace: [0, 0, 0, 0],
  bpf: [0, 0, 0],
  io_uring_setup: [8, 0],
  keyctl: [0, -3, 0],
  userfaultfd: [0],
  perf_event_open: [0, 0, -1, -1, 0],
  mount: [0, 0, 0, 0, 0],
  setuid: [0],
  open_by_handle_at: [0, 0, 0],
  socket: [VSOCK, 1, 0],
} as const;

test('the kernel of this machine refuses what the filter lists', async () => {
  const perl = findProgram('perl');
  const { arch } = process;
  if (perl === undefined || (arch !== 'x64' && arch !== 'arm64')) return;
  const names = Object.keys(CALLS) as (keyof typeof CALLS)[];
  const known = names.filter((name) => numberOf(name, arch) !== undefined);
  const lines = known.map((name) => {
    const words = [numberOf(name, arch), ...CALLS[name]].join();
    return `$! = 0; my $r = syscall(${words}); exit 0 if !$r && "${name}" eq "fork";
      print "${name} " . ($r == -1 ? $! + 0 : 0) . "\\n";`;
  });
  const jail = await openJail({
    sandbox: 'bwrap',
    log: openLog({ role: 'test', level: 'silent' }),
  });
  const jailed = jail.launch({
    argv: () => ['/bin/perl', '-e', lines.join('\n')],
    mounts: await programMounts(perl, '/bin/perl'),
    env: () => ({}),
    limits: { files: 64 },
    tmpBytes: 1 << 20,
    stdio: ['ignore', 'pipe', 'inherit'],
    nestedNamespaces: false,
  });
  let said = '';
  jailed.child.stdout?.on('data', (bytes) => {
    said += bytes;
  });
  await new Promise((resolve) => jailed.child.once('close', resolve));
  const wanted = known.map((name) => `${name} ${name === 'socket' ? EAFNOSUPPORT : EPERM}`);
  assert.equal(said.trim().split('\n'), wanted);
});

test.run();
