/** Changing the language for the next run on its thread. */
import { type Attack, fails } from '../lab/attack.ts';

const gives = (value: unknown) => ({ type: 'gives', value }) as const;
const MODULE_END = `export const definitions = () => new Map([['f', { handler: () => 1 }]]);
  export const manifests = () => [];`;

export const language: readonly Attack[] = [
  {
    name: 'pollute prototypes',
    body: `Object.prototype.polluted = 1; return 'done';`,
    ending: gives('done'),
  },
  {
    name: 'replace common built-in functions',
    body: `Array.prototype.map = () => 'evil'; JSON.stringify = () => '"evil"'; return 'done';`,
    ending: gives('done'),
  },
  {
    name: 'replace the functions that report its outcome',
    body: `const { MessagePort } = builtin('worker_threads');
      MessagePort.prototype.postMessage = () => {}; MessagePort.prototype.close = () => {};
      return 'done';`,
    ending: gives('done'),
  },
  {
    name: 'leave timers that print and call into the next run',
    body: `setInterval(() => { console.log('late'); Object.prototype.polluted = 1; }, 1);
      return 'done';`,
    ending: gives('done'),
  },
  {
    name: 'throw after it has returned',
    body: `setTimeout(() => { throw new Error('late'); }, 1); return 'done';`,
    ending: gives('done'),
  },
  {
    name: 'leave a rejection unhandled',
    body: `Promise.reject(new RangeError('floating')); await new Promise(() => {});`,
    ending: fails(/^floating$/),
  },
  {
    name: 'end its thread',
    body: `process.exit(3);`,
    ending: fails(/process\.exit\(3\)/),
  },
  {
    name: 'end its thread while its entry file loads',
    source: `process.exit(4); ${MODULE_END}`,
    ending: fails(/process\.exit\(4\)/),
  },
  {
    name: 'throw while its entry file loads',
    source: `throw new Error('at the top'); ${MODULE_END}`,
    ending: fails(/^at the top$/),
  },
  {
    name: 'a result that throws on access',
    body: `return { toJSON() { throw new Error('unreadable'); } };`,
    ending: fails(/unreadable/),
  },
  {
    name: 'a result with an endless getter',
    body: `return { toJSON() { return { next: this }; } };`,
    ending: fails(/cannot be written|call stack/i),
  },
];
