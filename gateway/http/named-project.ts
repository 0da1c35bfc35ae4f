/**
 * Requests of an operator login for a project: `/console/api/v1/as/{project}` before the path of a
 * request of the console or of `/v1`. The path behind it is served as for a login of that project,
 * so each page of a project works for the operator as it is: requests, streams, pictures and
 * downloads. Core refuses it with every other credential.
 */
import type { Middleware } from 'koa';
import type { State } from './auth.ts';

const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const NAMED = new RegExp(`^/console/api/v1/as/(${UUID})(/(?:v1|console/api/v1)/.*)$`);

/** Any other path below it is no route. */
export const namedProject: Middleware<State> = (ctx, next) => {
  const [, project, path] = NAMED.exec(ctx.path) ?? [];
  if (project !== undefined && path !== undefined) {
    ctx.state.namedProject = project;
    ctx.path = path;
  }
  return next();
};
