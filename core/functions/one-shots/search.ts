/**
 * A search of the web by the operator's SearXNG: its JSON, converted. Each answer is read within a
 * limit of bytes and time, and each project has a share of the searches at once.
 */
import type {
  SearchWebRequest,
  SearchWebResponse,
  SearchWebResponse_Result,
} from '../../../proto/gen/tabern/v1/one_shots.pb.ts';
import { Fault } from '../../../proto/rpc/errors.ts';
import { throwIfOver } from '../../../proto/rpc/local.ts';
import { openShares } from '../../../proto/sharing/shares.ts';
import { inRange } from '../../api/checks.ts';
import type { ProjectCaller } from '../../api/interceptors.ts';
import { newId } from '../../common/ids.ts';

const QUERY = { min: 1, max: 200, unit: ' characters' };
const RESULTS = { min: 1, max: 25, usual: 10 };
/** Ours: SearXNG itself waits some seconds for its engines. */
const TIMEOUT_MS = 15_000;
/** Ours: 25 results have some 50 KB. */
const ANSWER_MAX_BYTES = 1 << 20;
/** Ours: searches at once of all projects; one may use half. */
const SEARCHES_MAX = 32;
/** In characters, of each text of a result. Ours. */
const TEXT_MAX_CHARS = 2_048;

type Found = Readonly<Record<string, unknown>>;

/** `url`: of the SearXNG; undefined where the operator has none. */
export function webSearch(url: string | undefined) {
  const shares = openShares(SEARCHES_MAX);
  return async (
    { query, numResults = RESULTS.usual }: SearchWebRequest,
    { projectId, call }: ProjectCaller,
  ): Promise<SearchWebResponse> => {
    if (url === undefined) {
      const message = 'The operator has set no search engine (TABERN_SEARCH_URL, a SearXNG).';
      throw new Fault('NOT_IMPLEMENTED', message);
    }
    inRange('query', query.trim().length, QUERY);
    inRange('numResults', numResults, RESULTS);
    if (!shares.acquire(projectId, 1)) {
      throw new Fault('CONCURRENCY_LIMIT', 'Too many searches are under way. Retry the request.');
    }
    try {
      const signal = AbortSignal.any([call.signal, AbortSignal.timeout(TIMEOUT_MS)]);
      const found = await search(url, query, signal);
      return { query, requestId: newId(), results: found.flatMap(resultOf).slice(0, numResults) };
    } catch (error) {
      throwIfOver(call);
      const message = 'The search engine of the service did not answer. Try again later.';
      throw new Fault('SEARCH_FAILED', message, {}, error);
    } finally {
      shares.release(projectId, 1);
    }
  };
}

async function search(base: string, query: string, signal: AbortSignal): Promise<Found[]> {
  const url = new URL('search', base.endsWith('/') ? base : `${base}/`);
  url.search = new URLSearchParams({ q: query, format: 'json' }).toString();
  const answer = await fetch(url, { signal, headers: { accept: 'application/json' } });
  if (!answer.ok) {
    await answer.body?.cancel();
    throw new Error(`the search engine answered ${answer.status}`); // 403: it has no JSON format
  }
  const { results } = Object(JSON.parse(await limited(answer))) as { results?: unknown };
  return Array.isArray(results) ? results.map((one) => Object(one) as Found) : [];
}

async function limited({ body }: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of body ?? []) {
    size += part.byteLength;
    if (size > ANSWER_MAX_BYTES) throw new Error('the answer of the search engine is too large');
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

/** None for an entry without an address. */
function resultOf(found: Found): SearchWebResponse_Result[] {
  const url = webAddress(found['url']);
  if (url === undefined) return [];
  return [
    {
      id: newId(),
      url,
      title: textOf(found['title']) ?? url,
      author: textOf(found['author']),
      image: webAddress(found['img_src']) ?? webAddress(found['thumbnail']),
      publishedDate: timeOf(found['publishedDate']),
    },
  ];
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value.slice(0, TEXT_MAX_CHARS) : undefined;
}

function webAddress(value: unknown): string | undefined {
  const text = textOf(value);
  return text !== undefined && /^https?:/.test(URL.parse(text)?.protocol ?? '') ? text : undefined;
}

/** RFC 3339, in UTC; SearXNG names no zone. */
function timeOf(value: unknown): string | undefined {
  const text = textOf(value);
  if (text === undefined) return undefined;
  const at = new Date(/(?:Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
