/**
 * The command policy: decides which commands of a client reach Chrome. A deny-list with a reason
 * each. The jail is the security boundary; the policy keeps a client from ending its browser or
 * fingerprinting the host, and is the only protection where there is no jail. Pure: a command in, a
 * decision out. Written for the protocol of Chromium 156; check /json/protocol again with each
 * major version.
 */

import type { Route } from '../../jail/egress/routes.ts';
import { routeOf } from './context-route.ts';
import { isOverride } from './page-overrides.ts';

/** `params` is set for commands that the policy inspects (needsParams). */
export type Command = {
  id: number;
  method: string;
  params?: Record<string, unknown> | undefined;
};

export type Decision =
  | { kind: 'allow' }
  | { kind: 'rewritten'; command: Command }
  /** Creates a browser context that uses this route. */
  | { kind: 'proxied'; command: Command; route: Route }
  /** `isWarned`: drivers may swallow the error, so it is also written to the session's log. */
  | { kind: 'refuse'; why: string; code?: number; isWarned?: boolean }
  /** Browser.close closes the client's connection, never the browser of the other clients. */
  | { kind: 'leave' };

/** Context of a decision: directories as Chrome sees them, and the client's own sessions. */
export type PolicyContext = {
  downloads: string;
  uploads: string;
  owns: (cdpSessionId: string) => boolean;
};

const ALLOW: Decision = { kind: 'allow' };
/** Chrome's error code for detaching an unknown session. */
const INVALID_PARAMS = -32602;
/** The directory of uploads, as clients name it. Source: proto/spec/sessions.md 9. */
const UPLOADS = '/tmp/.uploads';

const REFUSED_DOMAINS: Readonly<Record<string, string>> = {
  SystemInfo: 'it reveals the command line and the machine',
  Tethering: 'it opens ports',
  PWA: 'it installs applications on the machine',
  Cast: 'it looks for devices on the network',
  CrashReportContext: 'it reveals the contents of crash reports',
};

const REFUSED: Readonly<Record<string, string>> = {
  'Browser.crash': 'it ends the browser for every client',
  'Browser.crashGpuProcess': 'it disturbs every client',
  'Browser.executeBrowserCommand': 'it runs commands of the browser window',
  'Browser.getBrowserCommandLine': 'it reveals the command line',
  'Browser.setDockTile': 'it reaches the desktop',
  'Browser.addPrivacySandboxEnrollmentOverride': 'it changes a setting of the whole browser',
  'Target.exposeDevToolsProtocol': 'it would expose this protocol to a page, past these rules',
  'Target.sendMessageToTarget': 'it would send commands past these rules: use flat sessions',
  'Target.setRemoteLocations': 'it connects to addresses',
  'Target.openDevTools': 'it opens a window of the browser',
  'Extensions.loadUnpacked': 'it reads a directory of the machine',
  'Extensions.uninstall': 'the extension is part of the session',
  'Memory.simulatePressureNotification': 'it disturbs every client',
  'Memory.setPressureNotificationsSuppressed': 'it disturbs every client',
  'Memory.getBrowserSamplingProfile': 'it reveals the browser process',
};

/**
 * Schemes that read neither this machine nor the browser's own pages. An extension's files belong
 * to the session.
 */
const SCHEMES: readonly string[] = ['http:', 'https:', 'data:', 'blob:', 'chrome-extension:'];
/** All others are the browser's own pages. */
const ABOUT: readonly string[] = ['blank', 'srcdoc'];

type Check = (command: Command, context: PolicyContext) => Decision;

const CHECKED: Readonly<Record<string, Check>> = {
  'Browser.close': () => ({ kind: 'leave' }),
  'Browser.setDownloadBehavior': downloads,
  'Page.setDownloadBehavior': downloads,
  'Page.navigate': url,
  'Target.createTarget': url,
  'Network.loadNetworkResource': url,
  'Fetch.continueRequest': url,
  'Network.continueInterceptedRequest': url,
  // Sessions must be flat: the nested kind hides its messages from the relay.
  'Target.attachToTarget': (command) => withParams(command, { flatten: true }),
  'Target.setAutoAttach': (command) => withParams(command, { flatten: true }),
  'Target.detachFromTarget': (command, { owns }) => {
    const id = command.params?.['sessionId'];
    // Chrome itself refuses another type
    if (typeof id !== 'string' || owns(id)) return ALLOW;
    return { kind: 'refuse', code: INVALID_PARAMS, why: 'No session with given id' };
  },
  'Target.createBrowserContext': (command) => {
    const { proxyServer, proxyBypassList, ...params } = command.params ?? {};
    if (!proxyServer && !proxyBypassList) return ALLOW;
    try {
      const route = proxyServer && routeOf(String(proxyServer), String(proxyBypassList ?? ''));
      if (!route) return rewritten(command, params);
      return { kind: 'proxied', command: { ...command, params }, route };
    } catch (error) {
      return refuse(command, `proxyServer ${(error as Error).message}`);
    }
  },
  'DOM.setFileInputFiles': (command, context) =>
    files(command, command.params?.['files'], context, (placed) => ({ files: placed })),
  'Input.dispatchDragEvent': (command, context) => {
    const data = command.params?.['data'] as { files?: unknown } | undefined;
    return files(command, data?.files, context, (placed) => ({ data: { ...data, files: placed } }));
  },
  'Tracing.start': (command) => {
    const { perfettoConfig, tracingBackend } = command.params ?? {};
    const isOwn = !perfettoConfig && (tracingBackend ?? 'auto') !== 'system';
    return isOwn ? ALLOW : refuse(command, 'it would trace the whole machine');
  },
};

/** The relay or its log reads the params of these. */
const OBSERVED: readonly string[] = ['Target.activateTarget', 'Network.setExtraHTTPHeaders'];

/** Whether the policy or the relay needs the params of the method; others are not parsed. */
export function needsParams(method: string): boolean {
  return Object.hasOwn(CHECKED, method) || OBSERVED.includes(method) || isOverride(method);
}

/** Decides on one command of a client. */
export function decide(command: Command, context: PolicyContext): Decision {
  const { method } = command;
  const domain = method.slice(0, method.indexOf('.'));
  const why = own(REFUSED, method) ?? own(REFUSED_DOMAINS, domain);
  if (why !== undefined) return refuse(command, why);
  return own(CHECKED, method)?.(command, context) ?? ALLOW;
}

/** The method comes from the client: `constructor` must not match an inherited property. */
function own<T>(table: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

function refuse(command: Command, why: string): Extract<Decision, { kind: 'refuse' }> {
  return { kind: 'refuse', why: `${command.method} is not available: ${why}` };
}

function rewritten(command: Command, params: Record<string, unknown>): Decision {
  return { kind: 'rewritten', command: { ...command, params } };
}

function withParams(command: Command, more: Record<string, unknown>): Decision {
  return rewritten(command, { ...command.params, ...more });
}

/**
 * Forces the session's download directory: Chrome could write to any path otherwise. Playwright
 * sends a path of the client's own machine.
 */
function downloads(command: Command, context: PolicyContext): Decision {
  const { downloadPath: _, ...params } = command.params ?? {};
  const { behavior } = params;
  if (behavior !== 'allow' && behavior !== 'allowAndName') return rewritten(command, params);
  // Page.setDownloadBehavior has no allowAndName
  const kept = command.method === 'Page.setDownloadBehavior' ? 'allow' : 'allowAndName';
  return rewritten(command, { ...params, behavior: kept, downloadPath: context.downloads });
}

function url(command: Command): Decision {
  const text = command.params?.['url'];
  if (typeof text !== 'string') return ALLOW; // Chrome accepts no other type
  return isOpenUrl(text) || isNoUrl(text)
    ? ALLOW
    : refuse(command, 'only http, https, data and blob URLs and about:blank can be opened');
}

/** Parses as Chrome does: control characters and blanks around or inside the scheme are ignored. */
export function isOpenUrl(text: string): boolean {
  const parsed = URL.parse(text);
  if (parsed === null) return false;
  if (parsed.protocol === 'view-source:') {
    return parsed.pathname.startsWith('http:') || parsed.pathname.startsWith('https:');
  }
  if (parsed.protocol === 'about:') return ABOUT.includes(parsed.pathname);
  return SCHEMES.includes(parsed.protocol);
}

/**
 * Whether Chrome itself rejects the text as a URL. A text without a scheme is never a URL; with a
 * scheme that is not open, Chrome's parser might accept what ours rejects.
 */
function isNoUrl(text: string): boolean {
  if (URL.canParse(text)) return false;
  const scheme = /^[\0-\x20]*([^:/?#]*:)/.exec(text.replace(/[\t\n\r]/g, ''))?.[1];
  return scheme === undefined || SCHEMES.includes(scheme.toLowerCase());
}

/**
 * Both commands read any file that Chrome can, so only the session's uploads are allowed. Clients
 * name them below UPLOADS, whatever the real directory is.
 */
function files(
  command: Command,
  named: unknown,
  { uploads }: PolicyContext,
  params: (placed: string[]) => Record<string, unknown>,
): Decision {
  if (named === undefined) return ALLOW;
  const all: unknown[] = Array.isArray(named) ? named : [undefined];
  const placed = all.flatMap((path) => {
    if (isBelow(uploads, path)) return [path];
    return isBelow(UPLOADS, path) ? [uploads + path.slice(UPLOADS.length)] : [];
  });
  if (placed.length < all.length) {
    const why = `only files below ${UPLOADS} can be given to a page`;
    return { ...refuse(command, why), isWarned: true };
  }
  const isUnchanged = placed.every((path, index) => path === all[index]);
  return isUnchanged ? ALLOW : withParams(command, params(placed));
}

function isBelow(dir: string, path: unknown): path is string {
  return typeof path === 'string' && path.startsWith(`${dir}/`) && !path.split('/').includes('..');
}
