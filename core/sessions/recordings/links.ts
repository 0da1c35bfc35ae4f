/**
 * The signed URLs of recordings: one segment of a page's video for players, and the whole video as
 * a file.
 */
import { Fault } from '../../../proto/rpc/errors.ts';
import { isId } from '../../common/ids.ts';
import { type LinkOptions, signedPaths } from '../../files/url-signature.ts';

/** Source: proto/spec/sessions.md 8. */
const LIFE_MS = 6 * 3_600_000;

const PART = /^\/v1\/sessions\/([^/]+)\/replays\/(\d{1,3})\/(\d{1,9})\.(?:mp4|m4s)$/;
const FILE = /^\/v1\/sessions\/([^/]+)\/recording\/downloads\/(\d{1,3})\.mp4$/;

type Recorded = { sessionId: string; pageId: number; projectId: string };
/** Without `number`: the whole video. */
export type LinkedRecording = Recorded & { number?: number };

/**
 * `keyId`: the public part of the requesting API key. `until`: the end of the requesting
 * credential, in Unix milliseconds.
 */
type Requested = Recorded & { keyId: string | undefined; until?: number | undefined };

export type RecordingLinks = ReturnType<typeof recordingLinks>;

/** Whether a URL has this form, before its signature is verified. */
export function isRecordingUrl(url: string): boolean {
  const [path = ''] = url.split('?', 1);
  return PART.test(path) || FILE.test(path);
}

export function recordingLinks(options: LinkOptions) {
  const { sign, read } = signedPaths('recordings', options);
  const get = (below: string, { sessionId, projectId, keyId, until = Infinity }: Requested) => {
    const path = `/v1/sessions/${sessionId}/${below}`;
    const lifeMs = Math.min(LIFE_MS, until - options.now());
    return sign({ method: 'GET', path, projectId, keyId, lifeMs });
  };
  return {
    part({ number, ...requested }: Requested & { number: number }): string {
      const name = number === 0 ? '0.mp4' : `${number}.m4s`;
      return get(`replays/${requested.pageId}/${name}`, requested);
    },
    file: (requested: Requested): string =>
      get(`recording/downloads/${requested.pageId}.mp4`, requested),
    /** The recording of the URL. Throws URL_SIGNATURE_INVALID or URL_EXPIRED. */
    async read(url: string): Promise<LinkedRecording> {
      const { path, projectId } = await read('GET', url);
      const [, sessionId = '', pageId, number] = PART.exec(path) ?? FILE.exec(path) ?? [];
      if (!isId(sessionId)) throw new Fault('URL_SIGNATURE_INVALID', 'Invalid signature.');
      const recorded = { sessionId, pageId: Number(pageId), projectId };
      return number === undefined ? recorded : { ...recorded, number: Number(number) };
    },
  };
}
