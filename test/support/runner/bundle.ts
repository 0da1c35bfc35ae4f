/** A bundle as a file, as a build worker's caller has it. */
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { type BundleOptions, bundle as code } from '../../../runner/builds/bundle/bundle.ts';

export async function bundle({ outFile, ...options }: BundleOptions & { outFile: string }) {
  const { code: module, warnings } = await code(options);
  await writeFile(outFile, module);
  const sha256 = createHash('sha256').update(module).digest('hex');
  return { sha256, size: module.byteLength, warnings };
}
