/** Functions of a second file: publishing index.ts publishes these too. */
import { defineFn } from '@browserbasehq/sdk-functions';
import { z } from 'zod';

const parametersSchema = z.object({ word: z.string(), times: z.number().default(1) });

defineFn('echo', async (ctx, params) => ({ ...params, session: ctx.session.id }), {
  sessionConfig: { browserSettings: { solveCaptchas: false } },
  parametersSchema,
});

defineFn('fail', async () => {
  console.error('about to fail');
  throw new RangeError('it was asked to fail');
});
