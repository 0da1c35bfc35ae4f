/**
 * Part of an installation: takes the viewer's two files out of its package, so that who installs
 * tabern gets no more of it (nor the telemetry that its package depends on).
 */
import { copyFileSync, mkdirSync } from 'node:fs';

const FILES = ['swagger-ui-bundle.js', 'swagger-ui.css', 'LICENSE', 'NOTICE'];
const to = new URL('./gen/', import.meta.url);

mkdirSync(to, { recursive: true });
for (const name of FILES) {
  copyFileSync(
    new URL(`../../../node_modules/swagger-ui-dist/${name}`, import.meta.url),
    new URL(name, to),
  );
}
