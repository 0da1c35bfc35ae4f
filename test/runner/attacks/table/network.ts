/** Reaching anything except its own browser and the public internet. */
import { type Attack, refused } from '../lab/attack.ts';

const PROXY = `const proxy = new URL(process.env.HTTP_PROXY);
  const door = { host: proxy.hostname, port: proxy.port };
  const ask = async (say) => {
    const said = String(await talk(door, say + '\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n'));
    if (/^HTTP\\/1.1 (400|403)/.test(said)) throw new Error(said.slice(9, 12));
    return said;
  };`;
const SPELLINGS = [
  ...['127.0.0.1', 'localhost', 'x.localhost', '2130706433', '0x7f.1', '0177.0.0.1', '127.1'],
  ...['0.0.0.0', '[::1]', '[::]', '[::ffff:127.0.0.1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]'],
];
const PRIVATE = ['169.254.169.254', '[fd00:ec2::254]', '10.0.0.1', '192.168.0.1', '100.64.0.1'];
const through = (hosts: readonly string[], port: string): string => `${PROXY}
  return all(Object.fromEntries(${JSON.stringify(hosts)}.flatMap((host) => [
    ['CONNECT ' + host, () => ask('CONNECT ' + host + ':' + ${port} + ' HTTP/1.1')],
    ['GET ' + host, () => ask('GET http://' + host + ':' + ${port} + '/ HTTP/1.1')],
  ])));`;
const to = (...wheres: string[]): string => `
  return all(Object.fromEntries([${wheres.join()}].map((where) => [JSON.stringify(where),
    () => talk(where)])));`;

export const network: readonly Attack[] = [
  {
    name: 'connect to a service of this machine on loopback',
    body: to("{ host: '127.0.0.1', port: params.port }", "{ host: '::1', port: params.port }"),
    ending: refused,
  },
  {
    name: 'connect to it by another address of the machine',
    body: to('{ host: params.address, port: params.port }'),
    ending: refused,
    hasControl: true,
  },
  {
    name: 'request the metadata service of a cloud',
    body: to("{ host: '169.254.169.254', port: 80 }"),
    ending: refused,
  },
  {
    name: 'connect to the local network, and to the internet without the proxy',
    body: to("{ host: '10.0.0.1', port: 80 }", "{ host: '8.8.8.8', port: 53 }"),
    ending: refused,
  },
  {
    name: 'send datagrams',
    body: `const dgram = builtin('dgram');
      const send = (port, host) => new Promise((resolve, reject) => {
        const socket = dgram.createSocket('udp4').on('error', reject).on('message', resolve);
        socket.send('x', port, host, (error) => error && reject(error));
        setTimeout(() => { socket.close(); reject(new Error('silence')); }, 500);
      });
      return all({ loopback: () => send(params.udpPort, '127.0.0.1'),
        outside: () => send(53, '10.0.0.1') });`,
    ending: refused,
  },
  {
    name: 'connect to a public unix socket of the machine',
    body: to('{ path: params.socket }'),
    ending: refused,
    hasControl: true,
  },
  {
    name: 'connect to an abstract socket of the machine',
    body: to("{ path: '\\0' + params.abstract }"),
    ending: refused,
    hasControl: true,
  },
  {
    name: "open another project's browser with its valid key",
    body: `const url = new URL(ctx.session.connectUrl);
      const head = 'host: x\\r\\nupgrade: websocket\\r\\nconnection: upgrade\\r\\n' +
        'sec-websocket-version: 13\\r\\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\n\\r\\n';
      const open = (key) => async () => {
        const where = { host: url.hostname, port: url.port };
        const said = await talk(where, 'GET /?signingKey=' + key + ' HTTP/1.1\\r\\n' + head);
        if (String(said).startsWith('HTTP/1.1 401')) throw new Error('401');
        return said;
      };
      return all({ valid: open(params.key), none: open(''), forged: open('A'.repeat(43)) });`,
    ending: refused,
  },
  {
    name: 'reach a service of this machine through the proxy, in 13 spellings',
    body: through(SPELLINGS, 'params.port'),
    ending: refused,
  },
  {
    name: 'reach private addresses through the proxy',
    body: through(PRIVATE, '80'),
    ending: refused,
  },
  {
    name: 'send mail through the proxy',
    body: `${PROXY}
      return all({ smtp: () => ask('CONNECT 8.8.8.8:25 HTTP/1.1') });`,
    ending: refused,
  },
  {
    name: 'fetch from a service of this machine',
    body: `return all({ fetch: async () => {
        const answer = await fetch('http://127.0.0.1:' + params.port + '/');
        if (!answer.ok) throw new Error(answer.status);
        return answer.text();
      } });`,
    ending: refused,
    hasControl: true,
  },
];
