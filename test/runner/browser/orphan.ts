/** Not a test: launches a Chrome in the given run directory, reports it, and waits to be killed. */
import { makeRunDir } from '../../../runner/machine/stale-runs.ts';
import { launchOne } from './lab.ts';

const runDir = await makeRunDir(process.argv[2] ?? '');
const chrome = await launchOne({ runDir, allow: [] });
process.stdout.write(`${chrome.dir}\n`);
setInterval(() => undefined, 60_000);
