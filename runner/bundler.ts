/**
 * The bundler's process: bundles one project and says how it went, as one line of JSON. Started by
 * bundle-process.ts. Argv: root, entrypoint, out file.
 */
import { writeSync } from 'node:fs';
import process from 'node:process';
import { bundle } from './bundle.ts';
import { BundleError } from './bundle-error.ts';
import type { Said } from './bundle-process.ts';

const [root = '', entrypoint = '', outFile = ''] = process.argv.slice(2);
const { signal } = new AbortController();
const said: Said = await bundle({ root, entrypoint, outFile, signal }).then(
  (made) => ({ made }),
  (error: unknown) => {
    if (error instanceof BundleError) return { refused: error.message };
    throw error;
  },
);
writeSync(process.stdout.fd, JSON.stringify(said));
process.exit(0); // esbuild's own process would keep it
