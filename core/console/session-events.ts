/** What happened to a session, from the rows about it. */
import type {
  ConsoleServiceService,
  ListSessionEventsResponse_Event as Event,
} from '../../proto/gen/tabern/v1/console.pb.ts';
import { dateOf } from '../api/answers.ts';
import { orNotFound } from '../api/checks.ts';
import type { ProjectCaller, Service } from '../api/interceptors.ts';
import { pathId } from '../common/ids.ts';
import type { SessionCourse } from '../store/types/console.ts';
import type { Store } from '../store/types.ts';

type Handlers = Service<typeof ConsoleServiceService, ProjectCaller>;

export function consoleSessionEvents(
  store: Pick<Store, 'consoleSessionCourse'>,
): Pick<Handlers, 'listSessionEvents'> {
  return {
    async listSessionEvents({ id: text }, { projectId }) {
      const id = pathId('id', text);
      const course = orNotFound(await store.consoleSessionCourse({ id, projectId }), 'Session', id);
      return { events: eventsOf(course) };
    },
  };
}

/** Oldest first; of one moment in the order of their course. */
function eventsOf(course: SessionCourse): Event[] {
  const events = [
    event('created', course.createdAt),
    event('started', course.startedAt),
    ...pagesOf(course),
    ...course.downloads.map(({ id, filename, size, createdAt }) =>
      event('download', createdAt, { text: filename, ref: id, size }),
    ),
    event('released', course.releasedAt),
    event('ended', course.endedAt, { text: course.endReason || undefined }),
    ...course.deliveries.map(({ id, eventType, createdAt, doneAt }) =>
      event('delivery', createdAt, { text: eventType, ref: id, endedAt: dateOf(doneAt) }),
    ),
  ];
  return events.flat().sort((a, b) => timeOf(a) - timeOf(b));
}

/** The times of a page count from the session's start. */
function pagesOf({ startedAt, createdAt, pages }: SessionCourse): Event[][] {
  const start = startedAt ?? createdAt;
  return pages.map(({ pageId, url, startMs, endMs, isClosed }) => {
    const endedAt = isClosed ? new Date(start + endMs) : undefined;
    return event('page', start + startMs, { text: url, ref: String(pageId), endedAt });
  });
}

type More = Partial<Pick<Event, 'text' | 'ref' | 'endedAt' | 'size'>>;

/** None before it happened. */
function event(type: string, at: number | null, more: More = {}): Event[] {
  const absent = { text: undefined, ref: undefined, endedAt: undefined, size: undefined };
  return at === null ? [] : [{ ...absent, ...more, type, at: new Date(at) }];
}

function timeOf({ at }: Event): number {
  return at?.getTime() ?? 0;
}
