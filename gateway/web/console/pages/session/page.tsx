/** One session: its picture, what its page and its clients did, and the chosen entry. */
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { api, sentenceOf } from '../../data/api.ts';
import { onChange } from '../../data/changes.ts';
import { pathOf } from '../../data/route.ts';
import { go, route, setQuery } from '../../data/router.ts';
import type { Session } from '../../data/types.ts';
import { useKeys } from '../../parts/keys.tsx';
import { Failure, useLoad } from '../../parts/load.tsx';
import { announce } from '../../parts/notice.tsx';
import { SessionState } from '../../parts/state.tsx';
import { copy, Foreign, Id, Length, Time } from '../../parts/text.tsx';
import { Labels } from '../sessions/columns.tsx';
import { isOpen, releaseAll } from '../sessions/sessions.tsx';
import { canWatch as hasPicture, useMoment } from './clock.ts';
import { DownloadsDialog } from './downloads-dialog.tsx';
import { Inspector } from './inspector.tsx';
import { useLogKeys } from './log-keys.ts';
import { Picture } from './picture.tsx';
import { ShareDialog } from './share-dialog.tsx';
import { TABS, type TabName, Tabs } from './tabs.tsx';
import { useCourse, useHands } from './timeline/course.ts';
import { Timeline } from './timeline/timeline.tsx';
import { useLog } from './use-log.ts';

export function SessionPage({ id }: { id: string }) {
  const { value, error, again } = useSession(id);
  if (value === undefined) {
    if (error !== undefined) return <Failure error={error} again={again} />;
    return <p class="hint">Reading…</p>;
  }
  return <Open session={value} again={again} />;
}

function Open({ session, again }: { session: Session; again: () => void }) {
  const [isMine, setMine] = useState(false);
  const [dialog, setDialog] = useState<'share' | 'downloads'>();
  const close = () => setDialog(undefined);
  const canWatch = hasPicture(session);
  const tab = tabOf(route.value.query.get('tab'));
  useMoment(session);
  const log = useLog(session, tab);
  const course = useCourse(session, log.timeline, useHands(isMine));
  const release = () => void releaseAll([session.id]);
  const hand = (mine: boolean) => setMine(mine && canWatch);
  useEffect(() => {
    if (!canWatch) setMine(false);
  }, [canWatch]);
  useLogKeys(session, log);
  useKeys([
    { keys: 't', does: 'take over', run: () => hand(true) },
    ...(isMine ? [{ keys: 'Escape', does: 'hand back', run: () => hand(false) }] : []),
    { keys: 'c', does: "copy the session's id", run: () => void copy(session.id) },
    ...(isOpen(session) ? [{ keys: 'r', does: 'release the session', run: release }] : []),
    ...TABS.map(([name, word], index) => {
      return { keys: String(index + 1), does: word, run: () => setQuery({ tab: name, e: '' }) };
    }),
  ]);
  // drawn again only when there is something else to draw
  const timeline = useMemo(() => {
    if (log.timeline === undefined) return null;
    return <Timeline session={session} timeline={log.timeline} course={course} />;
  }, [session, log.timeline, course]);
  return (
    <div class="session">
      <Header session={session} canWatch={canWatch} isMine={isMine} hand={hand}>
        <Actions session={session} show={setDialog} />
        {isOpen(session) && (
          <button type="button" onClick={release}>
            Release
          </button>
        )}
      </Header>
      {dialog === 'share' && <ShareDialog session={session} close={close} />}
      {dialog === 'downloads' && <DownloadsDialog session={session} close={close} />}
      <div class="session-top">
        <Picture session={session} isMine={isMine} idle={log.timeline?.idle} ended={again} />
        <Inspector entry={log.entry} session={session} />
      </div>
      {timeline}
      <Tabs session={session} tab={tab} log={log} />
    </div>
  );
}

type HeaderProps = {
  session: Session;
  canWatch: boolean;
  isMine: boolean;
  hand(mine: boolean): void;
  /** More actions. */
  children: ComponentChildren;
};

function Header({ session, canWatch, isMine, hand, children }: HeaderProps) {
  const { projectId } = route.value;
  const { invocationId, functionName } = session;
  return (
    <header class="session-head">
      <h1 class="hidden">Session</h1>
      <SessionState session={session} />
      <Id value={session.id} />
      <Labels session={session} projectId={projectId} />
      {invocationId !== undefined && (
        <a href={pathOf(projectId, 'runs', invocationId)}>{functionName ?? 'its run'}</a>
      )}
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
      <div class="session-actions">
        {canWatch && (
          <button type="button" class={isMine ? 'danger' : 'main'} onClick={() => hand(!isMine)}>
            {isMine ? 'Hand back' : 'Take over'}
          </button>
        )}
        {children}
      </div>
    </header>
  );
}

type ActionsProps = { session: Session; show(dialog: 'share' | 'downloads'): void };

function Actions({ session, show }: ActionsProps) {
  const [isStarting, setStarting] = useState(false);
  const copySession = async () => {
    setStarting(true);
    try {
      const { id } = await api<{ id: string }>(`/console/api/v1/sessions/${session.id}/copies`, {});
      go(pathOf(route.value.projectId, 'sessions', id));
      announce('A session with the same settings has started.');
    } catch (error) {
      announce(sentenceOf(error));
    } finally {
      setStarting(false);
    }
  };
  return (
    <>
      <button type="button" disabled={isStarting} onClick={() => void copySession()}>
        {isStarting ? 'Starting…' : 'Start one like this'}
      </button>
      <button type="button" onClick={() => show('downloads')}>
        Download
      </button>
      <button type="button" onClick={() => show('share')}>
        Share
      </button>
    </>
  );
}

/** The session, read again when it changes. */
function useSession(id: string) {
  const loaded = useLoad<Session>(`/console/api/v1/sessions/${encodeURIComponent(id)}`);
  const { again } = loaded;
  const [known, setKnown] = useState<Session>();
  useEffect(() => {
    return onChange(['SESSIONS'], ({ ids }) => {
      if (ids.length > 0 && !ids.includes(id)) return;
      api<Session>(`/console/api/v1/sessions/${encodeURIComponent(id)}`).then(setKnown, () => {
        // the page keeps what it has; the dot in the bar tells that the service is away
      });
    });
  }, [id]);
  return { ...loaded, value: known ?? loaded.value, again };
}

function tabOf(text: string | null): TabName {
  return TABS.find(([name]) => name === text)?.[0] ?? 'cdp';
}
