/**
 * The seccomp filter of a jailed process, in the kernel's form: classic BPF on the call's number
 * and arguments. All calls are allowed except those listed here, which fail with an errno. A call
 * by another architecture's numbers ends the process. Pure.
 */
import { constants } from 'node:os';
import type { JailSpec } from '../jail.ts';
import {
  ALWAYS,
  type Architecture,
  AUDIT,
  BARE,
  BARE_ALONE,
  MODES,
  NAMESPACES,
  numberOf,
  PROCESSES,
} from './syscalls.ts';

/** What a process is permitted. */
export type Profile = {
  /** It may have children. */
  processes: boolean;
  /** It may create namespaces, and change its root and user: Chrome's sandbox. */
  namespaces: boolean;
  /** It has no namespaces around it: the filter must replace them. */
  isBare: boolean;
  /** It may set modes and times of files. */
  modes: boolean;
};

/** `values` of a masked argument, or all others, are refused. */
type When = { arg: number; mask?: number; values: readonly number[]; refuse: 'these' | 'others' };
type Rule = { calls: readonly string[]; answer: number; when?: When };

const { EPERM, ENOSYS, EAFNOSUPPORT } = constants.errno;
const AF = { unix: 1, inet: 2, inet6: 10, netlink: 16 };
const SOCK_TYPE_MASK = 0xf;
const SOCK_STREAM = 1;
const SOCK_SEQPACKET = 5;
/** Any, or TCP. */
const IPPROTO = [0, 6];
const MSG_FASTOPEN = 0x20000000;
/** They inject input into a terminal as if its user typed it. */
const TERMINAL_INPUT = [0x5412, 0x541c];
const CLONE_THREAD = 0x00010000;
/** New namespaces: mount, cgroup, uts, ipc, user, pid, net. */
const CLONE_NEW = 0x7e020000;

/** The profile for a spec. */
export function profileOf(spec: JailSpec, isBare: boolean): Profile {
  const { nestedNamespaces, hasChildren = false, setsModes = false } = spec;
  const namespaces = nestedNamespaces && !isBare; // without namespaces there are none to create in
  return { processes: hasChildren || nestedNamespaces, namespaces, isBare, modes: setsModes };
}

export function hasFilter(architecture: string = process.arch): architecture is Architecture {
  return architecture in AUDIT;
}

/** In the kernel's form. Throws for an architecture without a table. */
export function seccompFilter(profile: Profile, architecture: string = process.arch): Buffer {
  if (!hasFilter(architecture)) throw new Error(`no filter of system calls for ${architecture}`);
  return assemble(rulesOf(profile), architecture);
}

function rulesOf({ processes, namespaces, isBare, modes }: Profile): Rule[] {
  // Chrome reads the interfaces there and finds loopback alone: navigator.onLine would be false.
  // When it cannot read them, it assumes a connection
  const hasNetlink = !isBare && !namespaces;
  const families = [AF.inet, AF.inet6];
  if (!isBare) families.push(AF.unix);
  if (hasNetlink) families.push(AF.netlink);
  const refuse = 'others';
  return [
    { calls: ALWAYS, answer: EPERM },
    // its flags are in memory, which a filter cannot read; libraries then fall back to clone
    { calls: ['clone3'], answer: ENOSYS },
    // AF_VSOCK reaches the host of this virtual machine: no network namespace covers it
    { calls: ['socket'], answer: EAFNOSUPPORT, when: { arg: 0, values: families, refuse } },
    { calls: ['ioctl'], answer: EPERM, when: { arg: 1, values: TERMINAL_INPUT, refuse: 'these' } },
    ...(namespaces ? [] : [{ calls: NAMESPACES, answer: EPERM }]),
    ...(processes ? [] : [{ calls: PROCESSES, answer: EPERM }]),
    ...(namespaces ? [] : [clone(processes ? 0 : CLONE_THREAD)]),
    ...(isBare ? bareRules(processes) : []),
    ...(isBare && !modes ? [{ calls: MODES, answer: EPERM }] : []),
  ];
}

/** Allows exactly these flags among those in the mask. */
function clone(flags: number): Rule {
  const when: When = { arg: 0, mask: flags | CLONE_NEW, values: [flags], refuse: 'others' };
  return { calls: ['clone'], answer: EPERM, when };
}

function bareRules(processes: boolean): Rule[] {
  const refuse = 'others';
  const ofOthers = (calls: readonly string[], arg: number): Rule => {
    return { calls, answer: EPERM, when: { arg, values: [0], refuse } };
  };
  const fast = (calls: readonly string[], arg: number): Rule => {
    const values = [MSG_FASTOPEN];
    return { calls, answer: EPERM, when: { arg, mask: MSG_FASTOPEN, values, refuse: 'these' } };
  };
  const only = (call: string, when: Omit<When, 'refuse'>): Rule => {
    return { calls: [call], answer: EAFNOSUPPORT, when: { ...when, refuse } };
  };
  // either end of a pair of datagram sockets can send to any socket file
  const pairs = only('socketpair', {
    arg: 1,
    mask: SOCK_TYPE_MASK,
    values: [SOCK_STREAM, SOCK_SEQPACKET],
  });
  return [
    { calls: BARE, answer: EPERM },
    ...(processes ? [pairs] : [{ calls: BARE_ALONE, answer: EPERM }]),
    // Landlock restricts connections of TCP alone: not UDP, not MPTCP, not one made by sending
    only('socket', { arg: 1, mask: SOCK_TYPE_MASK, values: [SOCK_STREAM] }),
    only('socket', { arg: 2, values: IPPROTO }),
    fast(['sendto', 'sendmmsg'], 3),
    fast(['sendmsg'], 2),
    ofOthers(['prlimit64', 'sched_setaffinity', 'sched_setscheduler', 'sched_setparam'], 0),
    ofOthers(['sched_setattr'], 0),
    ofOthers(['setpriority', 'ioprio_set'], 1),
  ];
}

/** Of struct sock_filter: code, jump offsets if true and if false, operand. */
type Instruction = readonly [code: number, yes: number, no: number, operand: number];
const CODE = { load: 0x20, and: 0x54, isEqual: 0x15, isAtLeast: 0x35, end: 0x06 };
/** Offsets in struct seccomp_data. Little-endian: an argument's lower half comes first. */
const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
const argAt = (index: number): number => 16 + 8 * index;
const ALLOW = 0x7fff0000;
const END_PROCESS = 0x80000000;
const fail = (errno: number): Instruction => [CODE.end, 0, 0, 0x00050000 | errno];
const LOAD_NUMBER: Instruction = [CODE.load, 0, 0, NUMBER_AT];
/** Of the 32-bit calls under x64's name (x32); none of our calls has a number so high. */
const X32 = 0x40000000;

function assemble(rules: readonly Rule[], architecture: Architecture): Buffer {
  const filter: Instruction[] = [
    [CODE.load, 0, 0, ARCHITECTURE_AT],
    [CODE.isEqual, 1, 0, AUDIT[architecture]],
    [CODE.end, 0, 0, END_PROCESS],
    LOAD_NUMBER,
    [CODE.isAtLeast, 0, 1, X32],
    [CODE.end, 0, 0, END_PROCESS],
  ];
  for (const { calls, answer, when } of rules) {
    const judge = when === undefined ? [fail(answer)] : judgeOf(when, answer);
    for (const call of calls) {
      const number = numberOf(call, architecture);
      if (number !== undefined) filter.push([CODE.isEqual, 0, judge.length, number], ...judge);
    }
  }
  filter.push([CODE.end, 0, 0, ALLOW]);
  return encode(filter);
}

/** Refuses, or continues with the number loaded again. */
function judgeOf({ arg, mask, values, refuse }: When, answer: number): Instruction[] {
  const tests = values.map((value, index): Instruction => {
    const left = values.length - 1 - index;
    // the refusal follows the tests, then the continuation
    return refuse === 'others'
      ? [CODE.isEqual, left + 1, 0, value]
      : [CODE.isEqual, left, left === 0 ? 1 : 0, value];
  });
  return [
    [CODE.load, 0, 0, argAt(arg)],
    ...(mask === undefined ? [] : [[CODE.and, 0, 0, mask] as const]),
    ...tests,
    fail(answer),
    LOAD_NUMBER,
  ];
}

function encode(filter: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(filter.length * 8);
  for (const [index, [code, yes, no, operand]] of filter.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(yes, index * 8 + 2);
    bytes.writeUInt8(no, index * 8 + 3);
    bytes.writeUInt32LE(operand >>> 0, index * 8 + 4);
  }
  return bytes;
}
