/** Pictures that are read again and again. The browser keeps one and asks whether it is current. */
import { inProject } from '../../data/api.ts';

const TIMEOUT_MS = 10_000;

/** `tag` identifies the content. */
export type Picture = { blob: Blob; tag: string };

/** Undefined without a picture; `tag` is that of the picture which is shown already. */
export async function pictureOf(path: string, tag: string): Promise<Picture | 'same' | undefined> {
  const init = { cache: 'no-cache', signal: AbortSignal.timeout(TIMEOUT_MS) } as const;
  const answer = await fetch(inProject(path), { ...init, credentials: 'same-origin' }).catch(
    () => undefined,
  );
  if (!answer?.ok) return undefined;
  const own = answer.headers.get('etag') ?? '';
  if (own !== '' && own === tag) return 'same';
  return { blob: await answer.blob(), tag: own };
}
