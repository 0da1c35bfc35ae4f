/**
 * POST /console/login, POST /console/logout, and GET /console/api/v1/me. The body of a login is
 * `{"apiKey": "..."}`, or `{"code": "..."}` with the code in the fragment of the link that `tabern
 * console` prints. The answer sets the cookie; scripts of the page cannot read it.
 */
import type Router from '@koa/router';
import type { RouterMiddleware } from '@koa/router';
import type { Context } from 'koa';
import { must } from '../../../proto/common/must.ts';
import type {
  ConsoleLogin,
  CreateConsoleLoginRequest,
} from '../../../proto/gen/tabern/v1/console_logins.pb.ts';
import { invalidField } from '../../../proto/rpc/errors.ts';
import type { Clients } from '../../../proto/rpc/services.ts';
import { BODY_UNKEYED_MAX_BYTES, REQUEST_TIMEOUT_MS } from '../../config.ts';
import { callAsGateway, type State } from '../../http/auth.ts';
import { baseUrlOf } from '../../http/base-url.ts';
import { type Json, readJson } from '../../http/body.ts';
import { networkOf } from '../../http/connections.ts';
import {
  type ConsolePlace,
  checkSameOrigin,
  loginOf,
  setCookie,
} from '../../http/console-cookie.ts';
import { VERSION } from '../../process/version.ts';
import { TOPICS } from './changes.ts';

type LoginDeps = ConsolePlace & { clients: Clients; gatewayToken: string };

export function addLogins(router: Router<State>, deps: LoginDeps): void {
  router.post('/console/login', logIn(deps));
  router.post('/console/logout', logOut(deps));
  router.get('/console/api/v1/me', me(deps));
}

/** Ends the browser's earlier login, whose cookie is replaced. */
function logIn({ clients, gatewayToken, publicUrl }: LoginDeps): RouterMiddleware<State> {
  return async (ctx) => {
    checkSameOrigin(ctx.req, { publicUrl });
    const body = await readJson(ctx.req, { maxBytes: BODY_UNKEYED_MAX_BYTES });
    const credential = credentialOf(body);
    const client = networkOf(ctx.req.socket.remoteAddress ?? '');
    const call = callAsGateway(ctx, gatewayToken)(REQUEST_TIMEOUT_MS);
    const { text, login } = await clients.consoleLogins.createConsoleLogin(
      { credential, client },
      call,
    );
    const earlier = loginOf(ctx.req, { publicUrl });
    if (earlier !== undefined) {
      await clients.consoleLogins.deleteConsoleLogin({ text: earlier }, call);
    }
    ctx.set('set-cookie', setCookie(ctx.req, text, { publicUrl }));
    ctx.body = shown(must(login, 'a login'));
  };
}

/** Without a login it does nothing: two tabs may log out. */
function logOut({ clients, gatewayToken, publicUrl }: LoginDeps): RouterMiddleware<State> {
  return async (ctx) => {
    checkSameOrigin(ctx.req, { publicUrl });
    const text = loginOf(ctx.req, { publicUrl });
    if (text !== undefined) {
      const call = callAsGateway(ctx, gatewayToken)(REQUEST_TIMEOUT_MS);
      await clients.consoleLogins.deleteConsoleLogin({ text }, call);
    }
    ctx.set('set-cookie', setCookie(ctx.req, '', { publicUrl }));
    ctx.status = 204;
  };
}

/** The project, the login and the service. With an API key in a header, `login` is null. */
function me({ clients, gatewayToken, publicUrl }: LoginDeps): RouterMiddleware<State> {
  return async (ctx) => {
    const service = {
      version: VERSION,
      baseUrl: publicUrl ?? baseUrlOf(ctx),
      topics: [...TOPICS.keys()],
    };
    const { login: text } = ctx.state;
    if (text === undefined) {
      const call = must(ctx.state.call, 'a key')();
      const { projects } = await clients.projects.listProjects({}, call);
      const { id, name } = must(projects[0], 'the project of the key');
      ctx.body = { projectId: id, projectName: name, login: null, service };
      return;
    }
    const call = callAsGateway(ctx as Context, gatewayToken)(REQUEST_TIMEOUT_MS);
    const { login } = await clients.consoleLogins.getConsoleLogin({ text, use: true }, call);
    ctx.body = { ...shown(must(login, 'a login')), service };
  };
}

/** An operator login has no project: both are null. */
function shown({ projectId, projectName, keyId, expiresAt, isOperator }: ConsoleLogin) {
  if (isOperator) {
    const login = { kind: 'operator', keyId: null, expiresAt };
    return { projectId: null, projectName: null, login };
  }
  const kind = keyId === undefined ? 'code' : 'key';
  return { projectId, projectName, login: { kind, keyId: keyId ?? null, expiresAt } };
}

/** Exactly one of both. */
function credentialOf(body: Json): CreateConsoleLoginRequest['credential'] {
  const given = Object.entries(typeof body === 'object' && body !== null ? body : {});
  const [[name, value] = [], ...more] = given;
  if (more.length > 0 || (name !== 'apiKey' && name !== 'code')) {
    throw invalidField('apiKey', 'or `code` must be the only member of the body.');
  }
  if (typeof value !== 'string') throw invalidField(name, 'must be a string.');
  return { $case: name, value: value.trim() };
}
