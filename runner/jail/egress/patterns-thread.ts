/** The thread that matches hosts against patterns of tenants. It keeps what it has compiled. */
import { parentPort } from 'node:worker_threads';
import type { RE2JS } from 're2js';
import { must } from '../../../proto/common/must.ts';
import { patternOf } from '../../../proto/network/patterns.ts';
import type { Question } from './patterns.ts';

/** Ours: those of a few sessions; a compilation takes some milliseconds. */
const COMPILED_MAX = 100;

const compiled = new Map<string, RE2JS>();
const port = must(parentPort, 'port to the parent');
port.on('message', ({ text, host }: Question) => {
  const pattern = compiled.get(text) ?? patternOf(text);
  compiled.delete(text); // the newest use goes last
  compiled.set(text, pattern);
  const [oldest] = compiled.keys();
  if (compiled.size > COMPILED_MAX && oldest !== undefined) compiled.delete(oldest);
  port.postMessage(pattern.matcher(host).find());
});
port.postMessage('ready');
