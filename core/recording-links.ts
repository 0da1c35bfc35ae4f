/**
 * The signed URLs of recordings: one part of a page's video for players, and the whole as a file.
 */
import { Fault } from '../proto/errors.ts';
import { isId } from './ids.ts';
import type { Sealer } from './seal.ts';
import { signedPaths } from './signed-paths.ts';

/** Source: reference.md 4.5. */
const LIFE_MS = 6 * 3_600_000;

const PART = /^\/v1\/sessions\/([^/]+)\/replays\/(\d{1,3})\/(\d{1,9})\.(?:mp4|m4s)$/;
const FILE = /^\/v1\/sessions\/([^/]+)\/recording\/downloads\/(\d{1,3})\.mp4$/;

type Recorded = { sessionId: string; pageId: number; projectId: string };
/** `number` absent: the whole. */
export type LinkedRecording = Recorded & { number?: number };

export type RecordingLinks = {
  part(recorded: Recorded & { number: number }): string;
  file(recorded: Recorded): string;
  /** Which it is for. Throws URL_SIGNATURE_INVALID or URL_EXPIRED. */
  read(url: string): LinkedRecording;
};

/** Whether a URL is of this kind, before anybody has judged it. */
export function isRecordingUrl(url: string): boolean {
  const [path = ''] = url.split('?', 1);
  return PART.test(path) || FILE.test(path);
}

export function recordingLinks(sealer: Sealer, now: () => number): RecordingLinks {
  const { sign, read } = signedPaths(sealer, 'recordings', now);
  const get = (path: string, projectId: string) =>
    sign({ method: 'GET', path: `/v1/sessions/${path}`, projectId, lifeMs: LIFE_MS });
  return {
    part({ sessionId, pageId, number, projectId }) {
      const name = number === 0 ? '0.mp4' : `${number}.m4s`;
      return get(`${sessionId}/replays/${pageId}/${name}`, projectId);
    },
    file: ({ sessionId, pageId, projectId }) =>
      get(`${sessionId}/recording/downloads/${pageId}.mp4`, projectId),
    read(url) {
      const { path, projectId } = read('GET', url);
      const [, sessionId = '', pageId, number] = PART.exec(path) ?? FILE.exec(path) ?? [];
      if (!isId(sessionId)) throw new Fault('URL_SIGNATURE_INVALID', 'Invalid signature.');
      const recorded = { sessionId, pageId: Number(pageId), projectId };
      return number === undefined ? recorded : { ...recorded, number: Number(number) };
    },
  };
}
