/** What an empty page says: the one command that fills it, with the real address and project. */
import { baseUrl } from '../data/api.ts';
import { route } from '../data/router.ts';
import { Empty } from './load.tsx';
import { Command } from './text.tsx';

export function FirstSession() {
  const command = `curl -X POST ${baseUrl()}/v1/sessions \\
  -H "X-SVC-API-Key: $TABERN_API_KEY" -H "Content-Type: application/json" \\
  -d '{"projectId": "${route.value.projectId}", "keepAlive": true}'`;
  return (
    <Empty title="No session yet.">
      <p>This command starts one:</p>
      <Command text={command} />
    </Empty>
  );
}

export function FirstFunction() {
  const command = 'npx tabern publish index.ts';
  return (
    <Empty title="No function yet.">
      <p>In a project with a function, this command publishes it:</p>
      <Command text={command} />
    </Empty>
  );
}

export function FirstRun() {
  const command = `curl -X POST ${baseUrl()}/v1/functions/FUNCTION_ID/invoke \\
  -H "X-SVC-API-Key: $TABERN_API_KEY" -H "Content-Type: application/json" \\
  -d '{"params": {}}'`;
  return (
    <Empty title="No run yet.">
      <p>This command runs a function:</p>
      <Command text={command} />
    </Empty>
  );
}

export function FirstContext() {
  const command = `curl -X POST ${baseUrl()}/v1/contexts \\
  -H "X-SVC-API-Key: $TABERN_API_KEY" -H "Content-Type: application/json" \\
  -d '{"projectId": "${route.value.projectId}", "name": "login"}'`;
  return (
    <Empty title="No context yet.">
      <p>A context keeps logins between sessions. This command makes one:</p>
      <Command text={command} />
    </Empty>
  );
}

const RECEIVER = `// receiver.mjs: WEBHOOK_SECRET=whsec_... node receiver.mjs
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
const webhook = new Webhook(process.env.WEBHOOK_SECRET);
createServer(async (request, response) => {
  const body = await buffer(request);
  try {
    console.log(webhook.verify(body, request.headers));
    response.writeHead(204).end();
  } catch {
    response.writeHead(400).end();
  }
}).listen(process.env.PORT ?? 3000);`;
const LISTEN = 'tabern listen --forward-to http://localhost:3000/';

export function FirstWebhook() {
  const command = `curl -X POST ${baseUrl()}/v1/webhooks \\
  -H "X-SVC-API-Key: $TABERN_API_KEY" -H "Content-Type: application/json" \\
  -d '{"endpoint": "https://example.com/hook", "eventTypes": ["functions.invocations.completed"]}'`;
  return (
    <Empty title="No webhook yet.">
      <p>This command registers one; its answer has the secret:</p>
      <Command text={command} />
      <p>
        A receiver, behind a proxy with https, after <code>npm install standardwebhooks</code>:
      </p>
      <Command text={RECEIVER} />
      <p>Without a public address, this command forwards each event to your machine:</p>
      <Command text={LISTEN} />
    </Empty>
  );
}
