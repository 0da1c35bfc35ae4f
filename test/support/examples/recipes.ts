/** The steps of the pages on client libraries and agents: each tool as its users start it. */
import * as assert from 'uvu/assert';
import { checkGo } from './go.ts';
import type { Pages } from './pages.ts';
import { checkPython, installPython, runPython } from './python.ts';
import { elsewhere, filled, openSession, program, release, type Step, shell } from './steps.ts';

const MCP = 'test/journey/sessions/mcp.test.ts';

/** A call of an MCP server that is started by this block, and what its answer has. */
function mcpServer(begins: string, tool: string, says: RegExp): Step {
  return {
    begins,
    async run(code, { reader, site }) {
      const call = { name: tool, arguments: { url: `${site.url}/rooms` } };
      const info = {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name: 't', version: '1' },
      };
      const messages = [
        { id: 1, method: 'initialize', params: info },
        { method: 'notifications/initialized' },
        { id: 2, method: 'tools/call', params: call },
      ].map((one) => JSON.stringify({ jsonrpc: '2.0', ...one }));
      await reader.write('messages', `${messages.join('\n')}\n`);
      // the input stays open until the answer is there, as an agent's does
      const input = `(cat messages; until grep -q '"id":2' answers; do sleep 0.2; done)`;
      const said = await reader.run(
        `: >answers; ${input} | ${code.trim().replace('npx', 'npx --yes')} | tee answers`,
      );
      assert.match(said, says, said);
    },
  };
}

export const RECIPES: Pages = {
  clients: [
    program('// raw.mjs', /^Rooms$/m, 'npm install chrome-remote-interface'),
    program(
      '// crawler.mjs',
      /\/rooms Rooms$[\s\S]*\/rooms\/1 Room 1$/m,
      'npm install @crawlee/puppeteer puppeteer-core',
    ),
    program('// sdk.mjs', /^Rooms$/m, 'npm install @browserbasehq/sdk playwright-core'),
    { begins: '# sdk.py', run: (code, { reader }) => checkPython(reader, 'sdk.py', code) },
    { begins: '// main.go', run: (code, { reader }) => checkGo(reader, code) },
  ],
  agents: [
    shell('export connectUrl=', /^$/),
    elsewhere('export BROWSERBASE', 'test/journey/sessions/stagehand.test.ts', 'STAGEHAND_API_URL'),
    elsewhere('// agent.mjs', 'test/journey/sessions/stagehand.test.ts', 'is(ran.code, 0'),
    program('// agent4.mjs', /^Rooms$/m, 'npm install @browserbasehq/stagehand@4'),
    {
      begins: '# session.py',
      async run(code, { reader }) {
        await installPython(
          reader,
          'python3 -m venv venv && . venv/bin/activate\npip install requests',
        );
        await reader.write('session.py', code);
        await runPython(reader, 'python session.py', /^ws:/m);
      },
    },
    mcpServer('npx @playwright/mcp', 'browser_navigate', /Page Title: Rooms/),
    mcpServer('npx chrome-devtools-mcp', 'new_page', /\/rooms/),
    {
      begins: 'npx agent-browser',
      async run(code, { reader }) {
        const said = await reader.run(code.replace('npx', 'npx --yes'));
        await reader.run('npx --yes agent-browser close');
        assert.match(said, /Rooms/);
      },
    },
    {
      begins: 'curl -X POST http://127.0.0.1:4747/v1/sessions/<session-id>/handoffs',
      async run(code, desk) {
        const session = await openSession(desk);
        const said = await desk.reader.run(filled(code, { session: session.id }));
        assert.match(said, /"status":"PENDING".*"url":"http:[^"]*\/live\?token=/);
        await release(desk, session);
      },
    },
    elsewhere('const cdp = await page', 'test/journey/sessions/handoff.test.ts', 'handoffComplete'),
  ],
  mcp: [
    elsewhere('npm install -g @playwright/mcp', MCP, 'TABERN_BASE_URL: stack.url'),
    elsewhere('{', MCP, "[BIN, 'mcp']"),
    elsewhere('claude mcp add', MCP, 'authorization: `Bearer'),
    elsewhere('{', MCP, '/mcp`'),
    elsewhere('npx @modelcontextprotocol/inspector', MCP, 'mcp-inspector'),
  ],
};
