/**
 * How readers of the description find operations: groups in the order of use, and within a group
 * the shorter paths first. Viewers show both as they are in the document.
 */

type Path = Record<string, unknown>;
type Tag = { name: string; description: string; has: RegExp };

/** The first that has the path. */
const TAGS: readonly Tag[] = [
  {
    name: 'Sessions',
    description: 'Remote browsers, their logs, files and recordings.',
    has: /^\/v1\/sessions\b/,
  },
  {
    name: 'Labels',
    description: 'Names of a project, by which its sessions are found.',
    has: /^\/v1\/labels\b/,
  },
  {
    name: 'Functions',
    description: 'Published code, its builds, versions, invocations, schedules and secrets.',
    has: /^\/v1\/(?:functions|secrets)\b/,
  },
  {
    name: 'One-shots',
    description: 'One page, loaded once: its picture, its text, its links.',
    has: /^\/v1\/(?:screenshot|pdf|content|links|markdown|fetch|search)\b/,
  },
  {
    name: 'Contexts',
    description: 'Stored browser profiles, such as logins.',
    has: /^\/v1\/contexts\b/,
  },
  {
    name: 'Webhooks',
    description: 'Signed events, sent to an endpoint, and their deliveries.',
    has: /^\/v1\/(?:webhooks|events)\b/,
  },
  {
    name: 'Files',
    description: 'Downloads of pages, browser extensions, and certificates that sessions trust.',
    has: /^\/v1\/(?:downloads|extensions|certificates)\b/,
  },
  { name: 'Projects', description: 'The project of the API key.', has: /^\/v1\/projects\b/ },
  {
    name: 'Connections',
    description: "CDP connections to sessions, and the discovery addresses of Chrome's own port.",
    has: /^\/(?:$|connect|json|devtools)/,
  },
  { name: 'Agents', description: 'Tools for agents, over MCP.', has: /^\/mcp\b/ },
  { name: 'Live view', description: 'The page that shows a session.', has: /^\/(?:live|view)\b/ },
  { name: 'Service', description: 'Health and documents.', has: /^/ },
];

/** For the document's `tags`. */
export const TAG_LIST = TAGS.map(({ name, description }) => ({ name, description }));

/** The paths in order, each operation with its tag. */
export function tagged(paths: Readonly<Record<string, Path>>): Record<string, Path> {
  const sorted = Object.entries(paths).sort(([a], [b]) => rank(a) - rank(b) || depth(a) - depth(b));
  return Object.fromEntries(
    sorted.map(([path, verbs]) => {
      const tags = [TAGS[rank(path)]?.name];
      const operations = Object.entries(verbs).map(([verb, one]) => [
        verb,
        { ...(one as object), tags },
      ]);
      return [path, Object.fromEntries(operations)];
    }),
  );
}

function rank(path: string): number {
  return TAGS.findIndex(({ has }) => has.test(path));
}

function depth(path: string): number {
  return path.split('/').length;
}
