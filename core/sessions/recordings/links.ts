/**
 * The signed URLs of recordings: one segment of a page's video for players, and the whole video as
 * a file.
 */
import { Fault } from '../../../proto/rpc/errors.ts';
import { isId } from '../../common/ids.ts';
import { type LinkOptions, signedPaths } from '../../files/signed-urls.ts';

/** Source: proto/spec/sessions.md 8. */
const LIFE_MS = 6 * 3_600_000;

const PART = /^\/v1\/sessions\/([^/]+)\/replays\/(\d{1,3})\/(\d{1,9})\.(?:mp4|m4s)$/;
const FILE = /^\/v1\/sessions\/([^/]+)\/recording\/downloads\/(\d{1,3})\.mp4$/;

type Recorded = { sessionId: string; pageId: number; projectId: string };
/** Without `number`: the whole video. */
export type LinkedRecording = Recorded & { number?: number };

/** `keyId`: the public part of the requesting API key. */
type Asked = Recorded & { keyId: string | undefined };

export type RecordingLinks = {
  part(asked: Asked & { number: number }): string;
  file(asked: Asked): string;
  /** The recording of the URL. Throws URL_SIGNATURE_INVALID or URL_EXPIRED. */
  read(url: string): Promise<LinkedRecording>;
};

/** Whether a URL has this form, before its signature is verified. */
export function isRecordingUrl(url: string): boolean {
  const [path = ''] = url.split('?', 1);
  return PART.test(path) || FILE.test(path);
}

export function recordingLinks(options: LinkOptions): RecordingLinks {
  const { sign, read } = signedPaths('recordings', options);
  const get = (below: string, { sessionId, projectId, keyId }: Asked) => {
    const path = `/v1/sessions/${sessionId}/${below}`;
    return sign({ method: 'GET', path, projectId, keyId, lifeMs: LIFE_MS });
  };
  return {
    part({ number, ...asked }) {
      const name = number === 0 ? '0.mp4' : `${number}.m4s`;
      return get(`replays/${asked.pageId}/${name}`, asked);
    },
    file: (asked) => get(`recording/downloads/${asked.pageId}.mp4`, asked),
    async read(url) {
      const { path, projectId } = await read('GET', url);
      const [, sessionId = '', pageId, number] = PART.exec(path) ?? FILE.exec(path) ?? [];
      if (!isId(sessionId)) throw new Fault('URL_SIGNATURE_INVALID', 'Invalid signature.');
      const recorded = { sessionId, pageId: Number(pageId), projectId };
      return number === undefined ? recorded : { ...recorded, number: Number(number) };
    },
  };
}
