/** `npm run reference`: writes the command table and the settings into README.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import { withReference } from '../../gateway/cli/reference.ts';

const README = new URL('../../README.md', import.meta.url);
writeFileSync(README, withReference(readFileSync(README, 'utf8')));
