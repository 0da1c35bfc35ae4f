/**
 * The first minute on a new Debian with the oldest supported versions of Node and their npm only:
 * bare.sh creates the machine and follows README.md. Needs root; without root it prints the
 * requirements.
 */
import { join } from 'node:path';
import { suite } from 'uvu';
import { is } from 'uvu/assert';
import { registryEnv, shell } from '../../support/clients/journey.ts';
import { sized } from '../../support/whole.ts';

const SCRIPT = join(import.meta.dirname, '../../support/service/bare.sh');
/** The exit code of bare.sh when it cannot create the machine. */
const LACKING = 77;
const MUST_RUN = process.getuid?.() === 0 || process.env['CI'] === 'true';
/** The versions of Node and npm, and the last step. */
const OLDEST = ['18', '9', 'start'];
/** A machine takes more than a minute of CPU: the others only in a whole run. */
const MACHINES = sized([OLDEST], [OLDEST, ['20', '10', 'package'], ['22', '11.6', 'start']]);

const bare = suite('journey/install/bare');

for (const [node = '', npm = '', step = ''] of MACHINES) {
  bare(`${step} with Node ${node} and npm ${npm}`, async () => {
    const run = { cwd: '/', env: registryEnv() };
    const { code, stdout, stderr } = await shell([SCRIPT, node, npm, step], run);
    if (!MUST_RUN && code === LACKING) return console.log(`not run: ${stderr.trim()}`);
    is(code, 0, `${stdout}\n${stderr}`);
  });
}

bare.run();
