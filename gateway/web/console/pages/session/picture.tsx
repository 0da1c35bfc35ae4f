/** The picture of a session: the live view while it runs, then what was recorded. */
import { useEffect } from 'preact/hooks';
import { isUtc } from '../../data/clock.ts';
import { lengthText } from '../../data/format.ts';
import { partOf } from '../../data/share.ts';
import type { LiveView, Replays, Session } from '../../data/types.ts';
import { Failure, useLoad } from '../../parts/load.tsx';
import { Address } from '../../parts/text.tsx';
import { Player } from './player.tsx';

/** The live view posts this when its session ends. */
const GONE = 'browserbase-disconnected';

type Props = { session: Session; canWatch: boolean; isMine: boolean; ended: () => void };

export function Picture({ session, canWatch, isMine, ended }: Props) {
  void isUtc.value;
  if (canWatch) return <Live session={session} isMine={isMine} ended={ended} />;
  if (session.status === 'PENDING') {
    return (
      <section class="picture" aria-label="Picture">
        <p class="hint">The browser is starting.</p>
      </section>
    );
  }
  return <Recorded session={session} />;
}

function Live({ session, isMine, ended }: Omit<Props, 'canWatch'>) {
  const { value, error, again } = useLoad<LiveView>(partOf(session.id, 'debug'));
  useEffect(() => {
    const hear = ({ data }: MessageEvent) => {
      if (data === GONE) ended();
    };
    addEventListener('message', hear);
    return () => removeEventListener('message', hear);
  }, [ended]);
  return (
    <section class={`picture ${isMine ? 'mine' : ''}`} aria-label="Picture">
      {isMine && <p class="mine-note">You have the mouse and the keyboard.</p>}
      {error !== undefined && <Failure error={error} again={again} />}
      {value !== undefined && (
        <iframe
          key={String(isMine)}
          title="Live view"
          src={liveUrl(value.debuggerUrl, !isMine)}
          sandbox="allow-scripts"
          allow="clipboard-read; clipboard-write"
        />
      )}
    </section>
  );
}

/** On this origin, which may differ from the public URL of the service. */
function liveUrl(debuggerUrl: string, isReadOnly: boolean): string {
  const { pathname, searchParams } = new URL(debuggerUrl, location.href);
  if (isReadOnly) searchParams.set('readonly', 'true');
  return `${pathname}?${searchParams}`;
}

function Recorded({ session }: { session: Session }) {
  const path = partOf(session.id, 'replays');
  const { value, error, again } = useLoad<Replays>(path);
  if (error !== undefined) {
    return (
      <section class="picture" aria-label="Picture">
        <Failure error={error} again={again} />
      </section>
    );
  }
  if (value === undefined) return <section class="picture" aria-label="Picture" />;
  if (value.pages.length === 0) {
    return (
      <section class="picture" aria-label="Picture">
        <p class="hint">The session has ended. No page of it was recorded.</p>
      </section>
    );
  }
  return <Player session={session} pages={value.pages} />;
}

export function PagesList({ session }: { session: Session }) {
  const path = partOf(session.id, 'replays');
  const { value, error, again } = useLoad<Replays>(path, ['SESSIONS'], session.id);
  if (error !== undefined) return <Failure error={error} again={again} />;
  if (value === undefined) return <p class="hint">Reading…</p>;
  if (value.pages.length === 0) return <p class="hint">No page was recorded.</p>;
  return (
    <table aria-label="Pages">
      <thead>
        <tr>
          <th scope="col">Page</th>
          <th scope="col">Opened at</th>
          <th scope="col">Length</th>
          <th class="wide" scope="col">
            Last address
          </th>
        </tr>
      </thead>
      <tbody>
        {value.pages.map(({ pageId, url, startTimeMs, endTimeMs }) => (
          <tr key={pageId}>
            <td>{pageId}</td>
            <td>{lengthText(startTimeMs)}</td>
            <td>{lengthText(endTimeMs - startTimeMs)}</td>
            <td class="wide">
              <Address url={url} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
