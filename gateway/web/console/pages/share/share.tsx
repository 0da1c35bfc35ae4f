/**
 * The page of a link to one session: its facts, its picture and, when the link includes it, its
 * log. It needs no login, changes nothing, and shows nothing else of the project.
 */
import { useCallback, useEffect, useState } from 'preact/hooks';
import { ApiError, api, sentenceOf } from '../../data/api.ts';
import { onChange, pollChanges } from '../../data/changes.ts';
import { now } from '../../data/clock.ts';
import { route, setQuery } from '../../data/router.ts';
import { readByToken, SHARED, tokenOf } from '../../data/share.ts';
import type { Session } from '../../data/types.ts';
import { useKeys } from '../../parts/keys.tsx';
import { Failure } from '../../parts/load.tsx';
import { SessionState } from '../../parts/state.tsx';
import { Foreign, Id, Length, Time } from '../../parts/text.tsx';
import { useMoment } from '../session/clock.ts';
import { Inspector } from '../session/inspector.tsx';
import { useLogKeys } from '../session/log-keys.ts';
import { PagesList } from '../session/pages-list.tsx';
import { Picture } from '../session/picture.tsx';
import { TABS, type TabName, Tabs } from '../session/tabs.tsx';
import { useCourse } from '../session/timeline/course.ts';
import { PagesTimeline } from '../session/timeline/pages-timeline.tsx';
import { Timeline } from '../session/timeline/timeline.tsx';
import { useLog } from '../session/use-log.ts';

/** Of proto/tabern/v1/console_shares.proto. */
type Shared = Pick<
  Session,
  'id' | 'status' | 'createdAt' | 'startedAt' | 'endedAt' | 'expiresAt' | 'endReason' | 'isReleased'
> & { hasLog: boolean; linkExpiresAt: string };

/** The lists of the log, and the recorded pages. */
const SHOWN: readonly TabName[] = ['cdp', 'net', 'console', 'pages'];
const SHOWN_TABS = TABS.filter(([name]) => SHOWN.includes(name));
const INCOMPLETE = 'This link is not complete. Copy all of it, from https to its end.';
/** The link is not valid, has expired, or its session is not there any more. */
const FINAL: readonly number[] = [401, 403, 404, 410];
/** Ours: after the end, when the service refuses the link for certain. */
const LATE_MS = 500;
/** The maximum of a timer. */
const TIMER_MAX_MS = 2 ** 31 - 1;

export function SharedPage() {
  const [token] = useState(() => tokenOf(location.hash));
  useEffect(() => {
    document.title = 'Shared session · tabern';
  }, []);
  if (token === '') return <Closed text={INCOMPLETE} />;
  readByToken(token);
  return <Reading />;
}

function Reading() {
  const { value, refusal, failure, again } = useShared();
  if (refusal !== undefined) return <Closed text={refusal} />;
  if (value !== undefined) return <Open shared={value} again={again} />;
  if (failure === undefined) return <p class="starting">Reading…</p>;
  return (
    <main class="login">
      <Failure error={failure} again={again} />
    </main>
  );
}

type State = { value?: Shared; refusal?: string; failure?: string };

/** The session, read again while it may change. The end of the link is final. */
function useShared() {
  const [state, setState] = useState<State>({});
  const again = useCallback(async () => {
    try {
      setState({ value: await api<Shared>(SHARED) });
    } catch (error) {
      const isFinal = error instanceof ApiError && FINAL.includes(error.status);
      const text = sentenceOf(error);
      setState((old) => (isFinal ? { refusal: text } : { ...old, failure: text }));
    }
  }, []);
  const isOver = state.refusal !== undefined;
  useEffect(() => {
    if (isOver) return;
    void again();
    pollChanges();
    return onChange(['SESSIONS'], () => void again());
  }, [again, isOver]);
  const end = state.value?.linkExpiresAt;
  useEffect(() => {
    if (end === undefined) return;
    const inMs = Date.parse(end) - now.peek() + LATE_MS;
    const timer = setTimeout(() => void again(), Math.min(Math.max(inMs, LATE_MS), TIMER_MAX_MS));
    return () => clearTimeout(timer);
  }, [end, again]);
  return { ...state, again: () => void again() };
}

function Closed({ text }: { text: string }) {
  return (
    <main class="login">
      <h1>Shared session</h1>
      <p role="alert">{text}</p>
    </main>
  );
}

type OpenProps = { shared: Shared; again: () => void };

function Open({ shared, again }: OpenProps) {
  const { hasLog, linkExpiresAt, ...facts } = shared;
  const session: Session = { ...facts, region: '', keepAlive: false, proxyBytes: 0, labels: [] };
  useMoment(session);
  return (
    <main class="shared">
      <Header session={session} until={linkExpiresAt} />
      {hasLog ? (
        <WithLog session={session} ended={again} />
      ) : (
        <div class="session without-log">
          <Picture session={session} isMine={false} idle={undefined} ended={again} />
          <PagesTimeline session={session} />
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls by keys */}
          <section class="scroll" tabIndex={0} aria-label="Pages">
            <PagesList session={session} />
          </section>
        </div>
      )}
    </main>
  );
}

function Header({ session, until }: { session: Session; until: string }) {
  return (
    <header class="session-head">
      <h1>Shared session</h1>
      <SessionState session={session} />
      <Id value={session.id} />
      <span class="fact">
        started <Time at={session.startedAt ?? session.createdAt} />
      </span>
      <span class="fact">
        length <Length from={session.startedAt} to={session.endedAt} />
      </span>
      {session.endReason !== undefined && (
        <span class="fact reason">
          ended: <Foreign text={session.endReason} />
        </span>
      )}
      <span class="space" />
      <span class="fact">
        read-only, until <Time at={until} />
      </span>
    </header>
  );
}

const NO_HANDS: [] = [];

function WithLog({ session, ended }: { session: Session; ended: () => void }) {
  const tab = SHOWN.find((name) => name === route.value.query.get('tab')) ?? 'cdp';
  const log = useLog(session, tab);
  const course = useCourse(session, log.timeline, NO_HANDS);
  useLogKeys(session, log);
  useKeys([
    ...SHOWN_TABS.map(([name, word], index) => {
      return { keys: String(index + 1), does: word, run: () => setQuery({ tab: name, e: '' }) };
    }),
  ]);
  return (
    <div class="session">
      <div class="session-top">
        <Picture session={session} isMine={false} idle={log.timeline?.idle} ended={ended} />
        <Inspector entry={log.entry} session={session} />
      </div>
      {log.timeline !== undefined && (
        <Timeline session={session} timeline={log.timeline} course={course} />
      )}
      <Tabs session={session} tab={tab} log={log} tabs={SHOWN_TABS} />
    </div>
  );
}
