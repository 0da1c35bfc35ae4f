/** Search over the objects of a project. */
import type {
  ConsoleServiceService,
  SearchResponse_Result as Result,
} from '../../proto/gen/tabern/v1/console.pb.ts';
import { inRange } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { isId } from '../common/ids.ts';
import type { FoundRow, SearchedKind } from '../store/types/console.ts';
import type { Store } from '../store/types.ts';
import { textOf } from './filters.ts';

type Handlers = Service<typeof ConsoleServiceService, ProjectCaller>;

const LIMIT_DEFAULT = 20;
const LIMITS = { min: 1, max: 50 };
/** Ours: as much of a URL or of metadata as one line shows. */
const TEXT_SHOWN_CHARS = 512;

export function consoleSearch(
  store: Pick<Store, 'consoleFindId' | 'consoleFindText'>,
): Pick<Handlers, 'search'> {
  return {
    async search({ q, limit: max = LIMIT_DEFAULT }, { projectId, call }) {
      inRange('limit', max, LIMITS);
      const text = textOf('q', q) ?? '';
      if (isId(text)) {
        const found = await store.consoleFindId({ projectId, id: text, max });
        return { results: found.slice(0, max).map(toProto) };
      }
      // Step by step: other operations of the store run in between.
      const results = new Map<string, FoundRow>();
      for (let step = 0; results.size < max && !call.signal.aborted; step += 1) {
        const found = await store.consoleFindText({ projectId, text, step, max });
        if (found === undefined) break;
        for (const row of found) {
          const name = `${row.kind} ${row.id}`;
          if (!results.has(name)) results.set(name, row);
        }
      }
      return { results: [...results.values()].slice(0, max).map(toProto) };
    },
  };
}

function toProto({ text, createdAt, webhookId, kind, ...same }: FoundRow): Result {
  return {
    ...same,
    kind: kind.toUpperCase() as Uppercase<SearchedKind>,
    text: text?.slice(0, TEXT_SHOWN_CHARS),
    createdAt: new Date(createdAt),
    webhookId: webhookId ?? undefined,
  };
}
