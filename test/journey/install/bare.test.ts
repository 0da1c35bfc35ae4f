/**
 * The first minute on a fresh Debian with the oldest Nodes and their npm, and nothing else: bare.sh
 * makes the machine and follows README.md. It needs root; elsewhere it prints what it needs.
 */
import { join } from 'node:path';
import { suite } from 'uvu';
import { is } from 'uvu/assert';
import { shell } from '../../support/clients/journey.ts';

const SCRIPT = join(import.meta.dirname, '../../support/service/bare.sh');
/** It cannot make the machine. */
const LACKING = 77;
const MUST_RUN = process.getuid?.() === 0 || process.env['CI'] === 'true';
/** Node, its npm, how far. */
const MACHINES = [
  ['18', '9', 'start'],
  ['20', '10', 'package'],
  ['22', '11.6', 'install'],
];
/** How this machine reaches its registry and Debian. */
const WAYS = /^(?:https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|TMPDIR|npm_config_(?!prefix).*)$/i;

const bare = suite('journey/install/bare');

for (const [node = '', npm = '', step = ''] of MACHINES) {
  bare(`${step} with Node ${node} and npm ${npm}`, async () => {
    const passed = Object.entries(process.env).filter(([name]) => WAYS.test(name));
    const env = Object.fromEntries(passed) as Record<string, string>;
    const { code, stdout, stderr } = await shell([SCRIPT, node, npm, step], { cwd: '/', env });
    if (!MUST_RUN && code === LACKING) return console.log(`not run: ${stderr.trim()}`);
    is(code, 0, `${stdout}\n${stderr}`);
  });
}

bare.run();
