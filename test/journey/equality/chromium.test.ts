import { compareEngine } from './compare.ts';

compareEngine('chromium', '/usr/lib/chromium/chromium');
