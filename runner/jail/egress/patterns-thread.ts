/** The thread that matches hosts against tenants' patterns. It caches compiled patterns. */
import { parentPort } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import type { RE2JS } from 're2js';
import { must } from '../../../proto/common/must.ts';
import { patternOf } from '../../../proto/network/patterns.ts';
import type { Question } from './patterns.ts';

/** Ours: those of a few sessions; a compilation takes some milliseconds. */
const COMPILED_MAX = 100;

const compiled = new LRUCache<string, RE2JS>({ max: COMPILED_MAX });
const port = must(parentPort, 'port to the parent');
port.on('message', ({ text, host }: Question) => {
  const pattern = compiled.get(text) ?? patternOf(text);
  compiled.set(text, pattern);
  port.postMessage(pattern.matcher(host).find());
});
port.postMessage('ready');
