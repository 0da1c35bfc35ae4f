/** Functions of a second file: publishing index.ts publishes these too. */
import { defineFn } from 'tabern';

defineFn('echo', async (ctx, params) => ({ params, invocation: ctx.invocation.id }), {
  sessionConfig: { timeout: 60 },
  parametersSchema: { type: 'object', maxProperties: 10 },
});

defineFn('fail', async () => {
  console.error('about to fail');
  throw new RangeError('it was asked to fail');
});
