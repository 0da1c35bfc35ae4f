/** Endless runs, and use of all memory. */
import { type Attack, atMost, ended, fails, own } from '../lab/attack.ts';

/** Its own run fails, or its process is lost. */
const noMemory = atMost(/allocat|memory|process was lost|RangeError/i);

export const memory: readonly Attack[] = [
  { name: 'an endless loop', body: `console.log('begun'); for (;;);`, ending: ended },
  {
    name: 'an endless loop of microtasks',
    body: `console.log('begun'); for (;;) await null;`,
    ending: ended,
  },
  {
    name: 'an endless regular expression',
    body: `console.log('begun'); return /^(a+)+$/.test('a'.repeat(64) + 'b');`,
    ending: ended,
  },
  {
    name: 'an endless wait (Atomics.wait)',
    body: `console.log('begun');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`,
    ending: ended,
  },
  {
    name: 'a promise that never resolves',
    body: `console.log('begun'); await new Promise(() => {});`,
    ending: ended,
  },
  {
    name: 'a loop in the entry file, before any handler',
    source: `console.log('begun'); for (;;);`,
    ending: ended,
  },
  {
    name: 'a heap bomb',
    body: `const all = []; for (let i = 0; ; i++) all.push(String(i).repeat(100).split(''));`,
    ending: fails(/ran out of memory/),
  },
  {
    name: 'a bomb of buffers',
    body: `const all = []; for (;;) all.push(Buffer.alloc(64 << 20, 1));`,
    ending: noMemory,
  },
  {
    name: 'a bomb of shared buffers',
    body: `const all = [];
      for (;;) { const one = new Uint8Array(new SharedArrayBuffer(64 << 20)); one.fill(1);
        all.push(one); }`,
    ending: noMemory,
  },
  {
    name: 'a bomb of WebAssembly memory',
    body: `const all = [];
      for (;;) { const one = new WebAssembly.Memory({ initial: 1024 });
        new Uint8Array(one.buffer).fill(1); all.push(one); }`,
    ending: noMemory,
  },
  {
    name: 'a flood of unread messages',
    body: `const { port1, port2 } = new MessageChannel();
      globalThis.kept = port2;
      console.log('begun');
      for (;;) port1.postMessage(new Uint8Array(1 << 20));`,
    ending: own,
  },
];
