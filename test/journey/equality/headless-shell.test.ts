import { compareEngine } from './compare.ts';

compareEngine('headless-shell', '/usr/lib/chromium/chromium-headless-shell');
