/** fetch whose answers are judged as they are read, beside whoever reads them. */
import { operationsOf, readContract } from '../../gateway/contract.ts';
import { describe } from '../../gateway/openapi.ts';
import { type Description, type Judge, openJudge } from './judge.ts';

/** In characters: a longer answer is a file, or a list that shorter ones stand for. */
const JUDGED_MAX = 1 << 20;

export type Judged = {
  fetch: typeof fetch;
  /** All that was found so far, in the order of the answers. */
  faults(): Promise<string[]>;
};

export function openJudged(baseUrl: string): Judged {
  let judge: Judge | undefined;
  const verdicts: Promise<string | undefined>[] = [];

  async function judged(url: URL, method: string, answer: Response): Promise<string | undefined> {
    const type = answer.headers.get('content-type') ?? '';
    const { status } = answer;
    let text: string;
    try {
      // Read whatever it is, or the test's own reader would wait for this one.
      text = await answer.text();
    } catch {
      return undefined; // the service was killed, or the test had read enough
    }
    if (text.length > JUDGED_MAX) return undefined;
    try {
      judge ??= openJudge(published());
      return judge.verdict({ method, path: url.pathname, status, type, text });
    } catch (error) {
      return `${method} ${url.pathname}: ${String(error)} in ${text.slice(0, 2_000)}`;
    }
  }

  return {
    async fetch(input, init) {
      const answer = await fetch(input, init);
      const isJson = /json/.test(answer.headers.get('content-type') ?? '') || !answer.body;
      if (isJson && String(input).startsWith(baseUrl)) {
        const url = new URL(String(input));
        verdicts.push(judged(url, init?.method ?? 'GET', answer.clone()));
      }
      return answer;
    },
    async faults() {
      const found = await Promise.all(verdicts);
      return found.filter((one) => one !== undefined);
    },
  };
}

/** What GET /openapi.json serves; the service may be down when an answer of its is judged. */
function published(): Description {
  const registry = readContract();
  return describe(registry, operationsOf(registry)) as Description;
}
