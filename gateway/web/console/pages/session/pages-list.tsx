/** The recorded pages of a session. */
import { lengthText } from '../../data/format.ts';
import { seek } from '../../data/playhead.ts';
import { partOf } from '../../data/share.ts';
import type { ReplayPage, Replays, Session } from '../../data/types.ts';
import { Failure, useAgain, useLoad } from '../../parts/load.tsx';
import { Address } from '../../parts/text.tsx';
import { canWatch, startOf } from './clock.ts';

export function PagesList({ session }: { session: Session }) {
  const path = partOf(session.id, 'replays');
  const { value, error, again } = useLoad<Replays>(path, ['SESSIONS'], session.id);
  useAgain(again, canWatch(session));
  if (error !== undefined) return <Failure error={error} again={again} />;
  if (value === undefined) return <p class="hint">Reading…</p>;
  if (value.pages.length === 0) return <p class="hint">No page was recorded.</p>;
  const start = startOf(session);
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
        {value.pages.map((page) => (
          <PageRow
            key={page.pageId}
            page={page}
            show={() => seek(start + page.startTimeMs, Number(page.pageId))}
          />
        ))}
      </tbody>
    </table>
  );
}

type RowProps = { page: ReplayPage; show(): void };

function PageRow({ page: { pageId, url, startTimeMs, endTimeMs }, show }: RowProps) {
  return (
    <tr>
      <td>
        <button type="button" class="plain" aria-label={`Show page ${pageId}`} onClick={show}>
          {pageId}
        </button>
      </td>
      <td>{lengthText(startTimeMs)}</td>
      <td>{lengthText(endTimeMs - startTimeMs)}</td>
      <td class="wide">
        <Address url={url} />
      </td>
    </tr>
  );
}
