/** Starting programs, reaching other processes, ending its own. */
import { type Attack, fails, lost, own, refused } from '../lab/attack.ts';

export const processes: readonly Attack[] = [
  {
    name: 'run a shell',
    body: `const { execFileSync } = builtin('child_process');
      return all({ shell: () => execFileSync('/bin/sh', ['-c', 'id']) });`,
    ending: refused,
    hasControl: true,
  },
  {
    name: 'run its own Node again, without the flags',
    body: `const { execFileSync } = builtin('child_process');
      return all({ node: () => execFileSync(process.execPath, ['-p', '1']) });`,
    ending: refused,
    hasControl: true,
  },
  {
    name: 'start a process by the binding under child_process',
    body: `return all({ binding: () => {
        const stdio = [0, 1, 2].map(() => ({ type: 'ignore' }));
        const options = { file: '/bin/sh', args: ['sh', '-c', 'id'], envPairs: [], stdio };
        const { error, pid } = process.binding('spawn_sync').spawn(options);
        if (error) throw new Error(error);
        return pid;
      } });`,
    ending: refused,
    hasControl: true,
  },
  {
    name: 'open a thread with its own flags, and read files from there',
    body: `const { Worker } = builtin('worker_threads');
      const code = \`const { parentPort } = require('worker_threads');
        let said; try { said = 'yes: ' + require('fs').readFileSync('/etc/passwd') }
        catch (error) { said = 'no: ' + error.code } parentPort.postMessage(said)\`;
      const thread = new Worker(code, { eval: true, execArgv: [], env: {} });
      const said = await new Promise((resolve) => thread.once('message', resolve));
      await thread.terminate();
      return { said };`,
    ending: refused,
    hasControl: true,
  },
  {
    name: 'load native code',
    body: `const { readdirSync } = builtin('fs');
      const libs = process.report.getReport().sharedObjects.filter((path) => /libc\\b/.test(path));
      return all({ addon: () => process.dlopen({ exports: {} }, libs[0] ?? '/lib/libc.so.6'),
        ffi: () => import('node:ffi') });`,
    ending: refused,
    deno: fails(/Requires sys access/),
  },
  {
    name: "run, load, read, write, signal and connect by Deno's own interface",
    body: `const { Deno } = globalThis;
      return all({ run: () => new Deno.Command('/bin/sh', { args: ['-c', 'id'] }).outputSync(),
        load: () => Deno.dlopen('/lib/libc.so.6', {}),
        read: () => Deno.readTextFileSync('/etc/passwd'),
        write: () => Deno.writeTextFileSync('/fn/planted', ''),
        signal: () => Deno.kill(params.pid, 'SIGCONT'),
        connect: () => Deno.connect({ port: params.port }),
        unix: () => Deno.connect({ transport: 'unix', path: params.socket }),
        control: () => Deno.connect({ transport: 'unix', path: '/run/ctl.sock' }),
        leave: async () => {
          const { state } = await Deno.permissions.request({ name: 'run' });
          if (state !== 'granted') throw new Error(state);
          return state;
        } });`,
    ending: refused,
  },
  {
    name: 'signal a process of the service, or all processes',
    body: `return all({ one: () => process.kill(params.pid, 0) });`,
    ending: refused,
    hasControl: true,
  },
  {
    name: 'lower the CPU priority of a process of the service',
    body: `const { setPriority } = builtin('os');
      return all({ nice: () => setPriority(params.pid, 19) });`,
    ending: refused,
  },
  {
    name: 'take over its main thread through the inspector, and read files from there',
    body: `const { Session } = builtin('inspector');
      const session = new Session();
      session.connectToMainThread();
      const expression = "process.getBuiltinModule('fs').readFileSync('/etc/passwd', 'utf8')";
      const said = await new Promise((resolve) => session.post('Runtime.evaluate', { expression },
        (error, { result, exceptionDetails } = {}) => resolve(error || exceptionDetails
          ? 'no: ' + (error ?? exceptionDetails.exception?.description) : 'yes: ' + result.value)));
      session.disconnect();
      return { said };`,
    ending: refused,
    deno: fails(/Requires sys access to "inspector"/),
    hasControl: true,
  },
  {
    name: 'end its own process through its main thread',
    body: `const { Session } = builtin('inspector');
      const session = new Session();
      session.connectToMainThread();
      session.post('Runtime.evaluate', { expression: 'process.reallyExit(3)' });
      await new Promise(() => {});`,
    ending: lost(/process was lost/),
    deno: fails(/Requires sys access to "inspector"/),
  },
  {
    name: 'kill or stop its own process by a signal',
    body: `const send = (signal) => () => {
        process.kill(process.pid, signal);
        throw new Error('nothing happened');
      };
      return all({ stop: send('SIGSTOP'), kill: send('SIGKILL') });`,
    ending: refused,
  },
  {
    name: 'a fork bomb',
    body: `const { spawn } = builtin('child_process');
      const bomb = () => new Promise((resolve, reject) =>
        spawn(process.execPath, ['-e', ''], { stdio: 'ignore' })
          .on('error', reject).on('spawn', resolve));
      return all(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [i, bomb])));`,
    ending: refused,
  },
  {
    name: 'a thread bomb',
    body: `const { Worker } = builtin('worker_threads');
      const threads = [];
      console.log('begun');
      for (;;) {
        const thread = new Worker('for (;;);', { eval: true });
        thread.on('error', () => {});
        threads.push(thread);
        await new Promise((resolve) => thread.once('online', resolve).once('exit', resolve));
      }`,
    ending: own,
  },
];
