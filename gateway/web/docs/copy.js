/**
 * A step of the installation: copies the viewer's two files from its package, so that installations
 * contain neither the rest of it nor the telemetry dependency of that package.
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
