/**
 * The build worker's program: reads a tenant's files in a jail. worker.ts starts it and describes
 * the protocol. Argv: the project's directory, and the archive for the worker that unpacks it. No
 * code of the project runs here.
 */
import process from 'node:process';
import { createInterface } from 'node:readline';
import { BuildFailure } from '../build-failure.ts';
import { BundleError, bundle } from '../bundle/bundle.ts';
import { measure } from '../install/measure.ts';
import { type Line, readBuild } from '../install/read-build.ts';
import { unpack } from '../unpack.ts';

export type Made = { size: number };
/** null: nothing to keep. */
export type Measured = { bytes: number | null };
export type Order =
  | { act: 'unpack' }
  | { act: 'read'; entrypoint: string; namesJsr: boolean }
  | { act: 'measure' }
  | { act: 'bundle'; entrypoint: string };

/** Of one step, in a build's log. Ours: with it an answer stays below its limit. */
const LINES_MAX = 200;
const LINE_MAX_CHARACTERS = 500;

const [root = '', archive = ''] = process.argv.slice(2);

await write('{}\n'); // ready
for await (const text of createInterface({ input: process.stdin })) {
  await obey(JSON.parse(text) as Order);
}

async function obey(order: Order): Promise<void> {
  const lines: Line[] = [];
  try {
    switch (order.act) {
      case 'unpack': {
        const message = `unpacked ${await unpack(archive, root)} entries`;
        return await answer({ lines: [{ level: 'info', message }] });
      }
      case 'read':
        return await answer({ lines, value: await readBuild(root, order, lines) });
      case 'measure': {
        const bytes = (await measure(root)) ?? null;
        return await answer({ lines, value: { bytes } satisfies Measured });
      }
      case 'bundle': {
        const { code, warnings } = await bundle(root, order.entrypoint);
        for (const message of warnings) lines.push({ level: 'warn', message });
        await answer({ lines, value: { size: code.byteLength } satisfies Made });
        return await write(code);
      }
    }
  } catch (error) {
    if (error instanceof BuildFailure) return await answer({ lines, failure: error.message });
    if (!(error instanceof BundleError)) throw error;
    const all = error.message.split('\n');
    const failure = `the sources cannot be bundled: ${all[0] ?? ''}`;
    const more = all.map((message): Line => ({ level: 'error', message }));
    return await answer({ lines: [...lines, ...more], failure });
  }
}

type Answer = { lines: Line[]; value?: unknown; failure?: string };

function answer({ lines, failure, value }: Answer): Promise<void> {
  const sent = lines.slice(0, LINES_MAX);
  const more = lines.length - sent.length;
  if (more > 0) sent.push({ level: 'warn', message: `and ${more} more` });
  const short = sent.map(({ level, message }) => {
    return { level, message: message.slice(0, LINE_MAX_CHARACTERS) };
  });
  const cut = failure?.slice(0, LINE_MAX_CHARACTERS);
  return write(`${JSON.stringify({ lines: short, value, failure: cut })}\n`);
}

/** Resolves when the system has accepted the bytes. */
function write(content: string | Uint8Array): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  process.stdout.write(content, () => resolve());
  return promise;
}
