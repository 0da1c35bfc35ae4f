/**
 * Not a test: installs a dependency in the given directory, and waits to be killed.
 */
import { installOne } from '../../../support/runner/install-one.ts';

const { signal } = new AbortController();
await installOne({ dir: process.argv[2] ?? '', sandbox: 'auto', env: process.env, signal });
