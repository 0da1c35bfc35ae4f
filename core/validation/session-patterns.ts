/**
 * The patterns of a session's proxies, compiled. Only the thread of core/validation/validator.ts
 * compiles them:
 * each takes milliseconds, and a tenant chooses how many. Pure.
 */
import { patternOf } from '../../proto/network/patterns.ts';
import type { Problem, SessionParams } from './session-params.ts';

/** Whether there is anything to compile. */
export function hasPatterns(params: SessionParams): boolean {
  return patternsOf(params).length > 0;
}

/** Of params that params.ts has accepted. */
export function patternsProblem(params: SessionParams): Problem | undefined {
  const wrong = patternsOf(params).find(({ pattern }) => !isPattern(pattern));
  if (!wrong) return undefined;
  const path = `.proxies[${wrong.index}].domainPattern`;
  return { path, problem: 'must be a regular expression of RE2.' };
}

function patternsOf({ proxies }: SessionParams): { pattern: string; index: number }[] {
  if (!Array.isArray(proxies)) return [];
  return proxies
    .map(({ domainPattern: pattern }: { domainPattern?: unknown }, index) => ({ pattern, index }))
    .filter((one): one is { pattern: string; index: number } => typeof one.pattern === 'string');
}

function isPattern(text: string): boolean {
  try {
    patternOf(text);
    return true;
  } catch {
    return false;
  }
}
