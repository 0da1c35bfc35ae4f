/** Too much output, and forged messages to the supervisor. */
import { type Attack, type Ending, fails, lost } from '../lab/attack.ts';

/** Writes bytes to each socket: one of them is the host's control connection. */
const say = (bytes: string): string => `const fs = builtin('fs');
  const bytes = ${bytes};
  let said = 0;
  for (let fd = 3; fd < 64; fd++) {
    try { if (fs.fstatSync(fd).isSocket()) said += fs.writeSync(fd, bytes); } catch {}
  }
  if (said === 0) return 'no socket was found';
  await new Promise(() => {});`;
const frame = (json: string): string => `((body) => {
  const head = Buffer.alloc(4); head.writeUInt32BE(body.length); return Buffer.concat([head, body]);
})(Buffer.from(JSON.stringify(${json})))`;
const hostile = lost(
  /process was lost: it (violated the host|sent a message for|exceeded the log|sent ready)/,
);
/** Under Deno the numbers of descriptors are Deno's own: none leads to a socket. */
const unheard: Ending = { type: 'gives', value: 'no socket was found' };

export const floods: readonly Attack[] = [
  {
    name: 'print 300,000 lines',
    body: `for (let i = 0; i < 300000; i++) console.log('line ' + i); return 'done';`,
    ending: {
      type: 'gives',
      value: 'done',
      printed: (lines) => lines.join('').length <= 2 ** 20 && lines.length < 300_000,
    },
  },
  {
    name: 'print one line of 16 MiB',
    body: `console.log('x'.repeat(16 << 20)); return 'done';`,
    ending: {
      type: 'gives',
      value: 'done',
      printed: (lines) => lines.join('').length <= 2 ** 20,
    },
  },
  {
    name: 'write 8 MiB to the descriptors of the process',
    body: `const fs = builtin('fs');
      for (let i = 0; i < 16; i++) {
        try { fs.writeSync(1 + i % 2, Buffer.alloc(1 << 19, 'x')); } catch {}
      }
      return 'done';`,
    ending: { type: 'gives', value: 'done', printed: (lines) => lines.length === 0 },
  },
  {
    name: 'a result of 100 MB',
    body: `return 'x'.repeat(1e8);`,
    ending: fails(/the limit is 6291456/),
  },
  {
    name: 'an error of 10 MB',
    body: `throw new Error('x'.repeat(1e7));`,
    ending: fails(/^x{1000,16384}$/),
  },
  {
    name: "send messages for another project's invocation",
    body: say(frame(`{ type: 'result', id: 'victim' }`)),
    ending: hostile,
    deno: unheard,
  },
  {
    name: 'send an invalid frame',
    body: say(frame(`{ type: 'what' }`)),
    ending: hostile,
    deno: unheard,
  },
  {
    name: 'announce a frame of 4 GiB',
    body: say('Buffer.alloc(8, 255)'),
    ending: hostile,
    deno: unheard,
  },
  {
    name: 'send ready again, with a port of another process',
    body: say(frame(`{ type: 'ready', cdpPort: params.port }`)),
    ending: hostile,
    deno: unheard,
  },
  {
    name: 'use up all descriptors',
    body: `const fs = builtin('fs');
      const own = new URL(import.meta.url);
      try { for (;;) fs.openSync(own); } catch (error) { return error.code; }`,
    ending: fails(/left hundreds of files and sockets open/),
  },
];
