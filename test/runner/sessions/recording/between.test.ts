/** A capture that starts while a page changes its site gets frames. */
import { suite } from 'uvu';
import { must } from '../../../../proto/common/must.ts';
import { openPages, type Page } from '../../../../runner/browser/cdp/pages.ts';
import { PageRecorder } from '../../../../runner/sessions/recording/page-recorder.ts';
import { until } from '../../../support/poll.ts';
import { type Lab, PATIENT } from '../../browser/lab.ts';
import { LIMIT_MS, look, openLiveLab } from '../live-view/viewers.ts';

const test = suite('runner/sessions/recording/between');
/** So many that some begin between two processes, as a third to a half of the time is (seen). */
const TIMES = 12;

/** Goes to and fro until it is disposed of. */
async function startTravel(lab: Lab): Promise<AsyncDisposable & { page: Page }> {
  const page = must((await openPages(lab.chrome)).active, 'the default page');
  const { session } = page;
  await session.call('Page.enable', {}, PATIENT);
  let isOver = false;
  const travel = async (): Promise<void> => {
    for (let turn = 0; !isOver; turn += 1) {
      const host = turn % 2 === 0 ? 'localhost' : '127.0.0.1';
      const url = `${lab.siteUrl.replace('127.0.0.1', host)}/${turn}`;
      const loaded = session.once('Page.loadEventFired', PATIENT);
      await Promise.all([session.call('Page.navigate', { url }, PATIENT), loaded]);
    }
  };
  const travelled = travel();
  travelled.catch(() => undefined); // rejects at the disposal
  return {
    page,
    async [Symbol.asyncDispose]() {
      isOver = true;
      await travelled;
    },
  };
}

test('every recorder gets a frame', async () => {
  await using lab = await openLiveLab();
  await using travel = await startTravel(lab);
  for (let time = 0; time < TIMES; time += 1) {
    let frames = 0;
    const onFrame = (): void => {
      frames += 1;
    };
    const recorder = new PageRecorder(travel.page, { now: Date.now, onFrame: onFrame });
    await until(() => frames > 0, LIMIT_MS);
    recorder.stop();
  }
});

test('every viewer gets a frame', async () => {
  await using lab = await openLiveLab();
  await using _travel = await startTravel(lab);
  for (let time = 0; time < TIMES; time += 1) {
    const viewing = await look(lab.viewUrl);
    const ended = viewing.closed.then(({ reason }) => {
      throw new Error(reason);
    });
    await Promise.race([until(() => viewing.frames.length > 0, LIMIT_MS), ended]);
    viewing.socket.close();
    await viewing.closed;
  }
});

test.run();
