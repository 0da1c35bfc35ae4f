/** The small picture of a running session, current to five seconds while it is in view. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { pictureOf } from './picture.ts';
import { inView } from './running.ts';

export function Thumbnail({ id }: { id: string }) {
  const round = inView.value;
  const url = usePicture(id, round);
  // its page is described by the title beside it
  return (
    <span class="thumbnail">
      {url !== undefined && <img src={url} alt="" width={160} height={100} />}
    </span>
  );
}

/** Its object URL; the last one stays until the next is there. */
function usePicture(id: string, round: ReadonlySet<string>): string | undefined {
  const [url, setUrl] = useState<string>();
  const shown = useRef({ tag: '', isReading: false, isGone: false });
  useEffect(() => {
    if (!round.has(id) || shown.current.isReading) return;
    const own = shown.current;
    own.isReading = true;
    void pictureOf(`/console/api/v1/sessions/${id}/thumbnail`, own.tag).then((found) => {
      own.isReading = false;
      if (found === undefined || found === 'same' || own.isGone) return;
      own.tag = found.tag;
      setUrl(URL.createObjectURL(found.blob));
    });
  }, [id, round]);
  useEffect(() => () => void (url !== undefined && URL.revokeObjectURL(url)), [url]);
  useEffect(
    () => () => {
      shown.current.isGone = true;
    },
    [],
  );
  return url;
}
