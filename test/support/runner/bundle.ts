/** Bundles a project into a file, as a build worker does. */
import { hash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { bundle as code } from '../../../runner/builds/bundle/bundle.ts';

export async function bundle(options: { root: string; entrypoint: string; outFile: string }) {
  const { root, entrypoint, outFile } = options;
  const { code: module, warnings } = await code(root, entrypoint);
  await writeFile(outFile, module);
  return { sha256: hash('sha256', module), size: module.byteLength, warnings };
}
