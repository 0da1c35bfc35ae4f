/** A recorder alone, messages for it, and the log that results. */
import * as assert from 'uvu/assert';
import { SessionLog } from '../../../../proto/gen/tabern/v1/sessions.pb.ts';
import { lineOf } from '../../../../runner/sessions/log/format.ts';
import {
  openProtocolRecorder,
  type SessionRecorder,
} from '../../../../runner/sessions/log/recorder.ts';
import { paramsOf, readMessage } from '../../../../runner/sessions/relay/commands.ts';

export const SESSION = '018f0000-0000-7000-8000-000000000000';
/** The end of each message of Chrome to a session. */
export const TAIL = ',"sessionId":"0123456789ABCDEF0123456789ABCDEF"}';

export type Logged = SessionLog & { line: string };

/** `logged` takes what is ready. */
export function openBench() {
  const secretHeaders = new Set<string>();
  const told: [count: number, bytes: number][] = [];
  const pageIdOf = (id: string): number => (id === 'first' ? 0 : 1);
  const onReady = (count: number, bytes: number): void => void told.push([count, bytes]);
  const recorder = openProtocolRecorder({ secretHeaders, pageIdOf, onReady });
  const lines = (): string[] =>
    recorder.take(10_000, 1 << 30).map((entry) => lineOf(entry, SESSION, secretHeaders));
  return {
    recorder,
    told,
    lines,
    logged(): Logged[] {
      return recorder.take(10_000, 1 << 30).map((entry) => {
        const line = lineOf(entry, SESSION, secretHeaders);
        assert.not(line.includes('\n'));
        const log = SessionLog.fromJSON(JSON.parse(line));
        // what is printed is what the contract has, and nothing beside it
        assert.equal(JSON.parse(JSON.stringify(SessionLog.toJSON(log))), JSON.parse(line));
        return { ...log, line };
      });
    },
  };
}

/** A command of a client. */
export function ask(session: SessionRecorder, message: object, at = 1): void {
  askText(session, JSON.stringify(message), at);
}

export function askText(session: SessionRecorder, message: string, at = 1): void {
  const text = Buffer.from(message);
  const read = readMessage(text);
  if ('error' in read) throw new Error(read.error.message);
  const { id, method, params } = read;
  session.onCommand({ id, method, ...paramsOf(read) }, { text, params }, at);
}

/** Passes a message of Chrome to the session. */
export function say(session: SessionRecorder, text: string, at = 2): void {
  session.onMessage(Buffer.from(text), at);
}
