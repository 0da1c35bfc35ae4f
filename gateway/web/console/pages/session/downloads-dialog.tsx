/** The dialog with everything of a session that can be saved as a file. */
import { useEffect, useState } from 'preact/hooks';
import { api, inProject, sentenceOf } from '../../data/api.ts';
import type { Session } from '../../data/types.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { useLoad } from '../../parts/load.tsx';
import { isOpen } from '../sessions/sessions.tsx';

const POLL_MS = 2_000;

/** GET /v1/sessions/{id}/recording/downloads. */
type Video = {
  pageId: string;
  status: 'NOT_REQUESTED' | 'PENDING' | 'COMPLETED' | 'FAILED';
  downloadUrl?: string;
};

export function DownloadsDialog({ session, close }: { session: Session; close: () => void }) {
  return (
    <Dialog label="Download" close={close}>
      <h2>Download</h2>
      <ul class="downloads">
        <li>
          <a href={inProject(`/v1/sessions/${session.id}/logs`)} download={`${session.id}.json`}>
            Protocol log (JSON)
          </a>
        </li>
        <li>
          <a
            href={inProject(`/v1/sessions/${session.id}/downloads`)}
            download={`${session.id}.zip`}
          >
            Files that its pages downloaded (zip)
          </a>
        </li>
        {isOpen(session) ? (
          <li class="hint">Videos can be downloaded after the end of the session.</li>
        ) : (
          <Videos session={session} />
        )}
      </ul>
      <button type="button" onClick={close}>
        Close
      </button>
    </Dialog>
  );
}

/** One per recorded page, each to be prepared first: as the interface has it. */
function Videos({ session }: { session: Session }) {
  const path = `/v1/sessions/${session.id}/recording/downloads`;
  const { value, error, again } = useLoad<{ downloads: Video[] }>(path);
  const [failure, setFailure] = useState<string>();
  const videos = value?.downloads ?? [];
  const isPending = videos.some(({ status }) => status === 'PENDING');
  useEffect(() => {
    if (!isPending) return;
    const timer = setInterval(again, POLL_MS);
    return () => clearInterval(timer);
  }, [isPending, again]);
  const prepare = () => {
    setFailure(undefined);
    api(path, {}).then(again, (reason: unknown) => setFailure(sentenceOf(reason)));
  };
  const isUnprepared = videos.some(({ status }) => status !== 'COMPLETED' && status !== 'PENDING');
  return (
    <>
      {videos.map((video) => (
        <li key={video.pageId}>
          <VideoLine session={session} video={video} />
        </li>
      ))}
      {isUnprepared && (
        <li>
          <button type="button" onClick={prepare}>
            Prepare the videos
          </button>
        </li>
      )}
      {(failure ?? error) !== undefined && <li class="hint">{failure ?? error}</li>}
    </>
  );
}

function VideoLine({ session, video }: { session: Session; video: Video }) {
  const { pageId, status, downloadUrl } = video;
  const name = `Video of page ${pageId} (MP4)`;
  if (downloadUrl !== undefined) {
    // signed, and on this origin, which may differ from the public URL of the service
    const { pathname, search } = new URL(downloadUrl, location.href);
    return (
      <a href={pathname + search} download={`${session.id}-${pageId}.mp4`}>
        {name}
      </a>
    );
  }
  const words = {
    NOT_REQUESTED: '',
    PENDING: ': in preparation…',
    FAILED: ': failed',
    COMPLETED: '',
  };
  return (
    <span class="none">
      {name}
      {words[status]}
    </span>
  );
}
