/** Hand-written routes of files: downloads, uploads, extensions, and Stagehand's start. */
import type { FileRegistry } from '@bufbuild/protobuf';
import type Router from '@koa/router';
import { EXTENSION_MAX_BYTES, SESSION_FILE_MAX_BYTES } from '../../../proto/common/limits.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import type { State } from '../../http/auth.ts';
import type { Operation } from '../../rest/operations.ts';
import { START_PATH, START_PATHS, startSession } from '../sessions/stagehand-start.ts';
import {
  DOWNLOAD_CONTENT,
  DOWNLOAD_ROUTE,
  DOWNLOADS_PATHS,
  DOWNLOADS_ROUTE,
  getDownload,
  getSessionDownloads,
} from './downloads.ts';
import { createExtension, EXTENSIONS_PATH, EXTENSIONS_PATHS } from './extensions.ts';
import { FORM_EXTRA_BYTES } from './upload-form.ts';
import type { EnterUpload } from './upload-limits.ts';
import { isSessionUpload, UPLOADS_PATHS, UPLOADS_ROUTE, uploadFile } from './uploads.ts';

type Options = {
  clients: Clients;
  gatewayToken: string;
  registry: FileRegistry;
  enter: EnterUpload;
};

/** Registered before the generated routes, whose parameters would match some of these paths. */
export function filesRoutes(router: Router<State>, options: Options): void {
  const { clients, gatewayToken, registry, enter } = options;
  router.post(START_PATH, startSession(clients, registry));
  router.get(DOWNLOADS_ROUTE, getSessionDownloads(clients));
  router.get(DOWNLOAD_ROUTE, getDownload(clients, registry));
  router.post(EXTENSIONS_PATH, createExtension(clients, registry, enter));
  router.post(UPLOADS_ROUTE, uploadFile({ clients, gatewayToken }, enter));
}

/** Limit of an upload's body in bytes; undefined for other requests. */
export function uploadMaxBytes(method: string, path: string): number | undefined {
  if (isSessionUpload(method, path)) return SESSION_FILE_MAX_BYTES + FORM_EXTRA_BYTES;
  const isExtension = method === 'POST' && path === EXTENSIONS_PATH;
  return isExtension ? EXTENSION_MAX_BYTES + FORM_EXTRA_BYTES : undefined;
}

/** Additional answers of generated operations. */
export function fileContents({ verb, template }: Operation): object {
  return verb === 'get' && template === '/v1/downloads/{id}' ? DOWNLOAD_CONTENT : {};
}

/** The OpenAPI descriptions of these routes. */
export const FILES_PATHS = {
  ...DOWNLOADS_PATHS,
  ...EXTENSIONS_PATHS,
  ...START_PATHS,
  ...UPLOADS_PATHS,
};
