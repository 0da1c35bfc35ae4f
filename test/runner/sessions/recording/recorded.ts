/** Records a real Chrome into a real core. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { newId } from '../../../../core/common/ids.ts';
import { must } from '../../../../proto/common/must.ts';
import { openEncoder } from '../../../../runner/sessions/recording/encoder.ts';
import { recording } from '../../../../runner/sessions/recording/recording.ts';
import {
  openRecordings,
  type Recipient,
  type Recordings,
} from '../../../../runner/sessions/recording/uploader.ts';
import type { Booted } from '../../../core/boot.ts';
import { addRecording } from '../../../support/core/reports.ts';
import { until } from '../../../support/poll.ts';
import { pixelAt } from '../../../support/runner/video.ts';
import { type Lab, launchOne, log } from '../../browser/lab.ts';

export const LIMIT_MS = 30_000;

export type Recorded = { leaseId: string; sessionId: string };

export async function lease(app: Booted): Promise<Recorded> {
  const { sessionId } = await app.invoke(await app.publish({ name: newId() }));
  const { leaseId } = must((await app.lease('INVOCATION'))[0], 'work');
  return { leaseId, sessionId };
}

const COLOURS = { red: [255, 0, 0], lime: [0, 255, 0], blue: [0, 0, 255] } as const;
export type Colour = keyof typeof COLOURS;

/** Waits until a page's last frame has that colour. */
export type Shows = (colour: Colour) => Promise<void>;
/** Sets the page's colour, and waits for it. */
export type Paint = (page: Page, colour: Colour) => Promise<void>;

/** Records what `drive` does, ends the session, and encodes what is left. */
export async function record(
  app: Booted,
  lab: Lab,
  { leaseId, sessionId }: Recorded,
  drive: (browser: Browser, paint: Paint, shows: Shows) => Promise<void>,
  now = Date.now,
): Promise<void> {
  const encoder = openEncoder({
    launch: (wanted) => launchOne({ runDir: lab.runDir, allow: [], ...wanted }),
    log,
  });
  const isOverloaded = (): boolean => false; // whatever runs beside the test
  await using recordings = openRecordings({ encoder, runDir: lab.runDir, log, isOverloaded });
  const { clients, asRunner: call } = app;
  const last = new Map<string, Buffer>(); // by buffer
  const watched: Recordings = {
    ...recordings,
    openFrameBuffer(name, projectId) {
      const buffer = recordings.openFrameBuffer(name, projectId);
      const { add } = buffer;
      return Object.assign(buffer, {
        add(frame: Parameters<typeof add>[0]) {
          last.set(name, frame.jpeg);
          return add(frame);
        },
      });
    },
  };
  const shows: Shows = async (colour) => {
    const path = join(lab.runDir, 'frame.jpg');
    const isShown = async (frame: Buffer) => {
      writeFileSync(path, frame);
      const seen = await pixelAt(path, 0, { x: 100, y: 600 });
      return seen.every(
        (value, index) => Math.abs(value - must(COLOURS[colour][index], 'a part of it')) < 60,
      );
    };
    await until(async () => {
      for (const frame of last.values()) if (await isShown(frame)) return true;
      return false;
    }, LIMIT_MS);
  };
  const paint: Paint = async (page, colour) => {
    await page.evaluate(`document.documentElement.style.background = '${colour}'`);
    await shows(colour);
  };
  const lease: Recipient['lease'] = {
    id: leaseId,
    call,
    async append(entry) {
      if (entry.kind === 'recording') await addRecording(app, entry.recording);
      return false;
    },
    waitOf: () => 0,
  };
  const open = recording({
    clients,
    lease,
    sessionId,
    recordings: watched,
    now,
    warn: () => {},
    projectId: 'recorded',
  });
  const part = await open(lab.chrome);
  const browser = await chromium.connectOverCDP(lab.connectUrl);
  await drive(browser, paint, shows);
  await browser.close();
  await part.close?.();
  const end = { leaseId, outcome: undefined, sessionStartMs: app.clock.now(), steps: [] };
  await clients.runners.completeInvocation(end, call);
  await recordings.idle();
}

export async function downloads(app: Booted, id: string) {
  const { sessions } = app.clients;
  await sessions.requestRecordingDownloads({ id }, app.asProject);
  return (await sessions.listRecordingDownloads({ id }, app.asProject)).downloads;
}

export async function save(app: Booted, url: string, path: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const { chunk } of app.clients.blobs.readBlob({ blobId: '', url }, app.asGateway)) {
    chunks.push(chunk);
  }
  writeFileSync(path, Buffer.concat(chunks));
  return path;
}

export const pageOf = (browser: Browser): Page =>
  must(browser.contexts()[0]?.pages()[0], 'the default page');
