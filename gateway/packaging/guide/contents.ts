/**
 * The pages of the guide, in the order of the navigation. A page is
 * `gateway/web/docs/guide/<name>.md`.
 */
export const CONTENTS: readonly { heading: string; pages: readonly string[] }[] = [
  { heading: 'Start', pages: ['quickstart', 'comparison', 'faq'] },
  {
    heading: 'Use',
    pages: [
      ...['sessions', 'functions', 'secrets', 'contexts', 'recordings', 'webhooks', 'files'],
      ...['certificates', 'one-shots', 'console', 'clients', 'agents', 'mcp'],
    ],
  },
  {
    heading: 'Operate',
    pages: ['deployment', 'operations', 'sizing', 'benchmarks', 'security', 'troubleshooting'],
  },
  { heading: 'Reference', pages: ['configuration', 'command-line', 'limits', 'architecture'] },
];
