#!/usr/bin/env node
/**
 * The published command. Plain JavaScript, because the machine's own Node may be too old for the
 * other files: it then starts the Node of its dependencies and forwards streams, signals and the
 * exit code. Also because its imports are compiled before the compile cache is configured.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { keepModules } from './modules.js';

/**
 * The version of the dependencies' own Node. An older one cannot parse the sources (`using`), and
 * any other cannot load the native modules that are installed for this one.
 */
const MAJOR = '24';
/** EX_CONFIG: the operator must fix a problem. */
const EXIT_OPERATOR = 78;

/** Paths in a checkout, in the single executable and in the npm package. */
const BINS = ['./bin.ts', './bin.js', '../dist/js/gateway/bin.js'];

const bin = BINS.map((path) => new URL(path, import.meta.url)).find((url) => existsSync(url));

keepModules();
// Deno names a Node version of its own, parses the sources and loads the native modules
if (process.versions.deno || process.versions.node.startsWith(`${MAJOR}.`)) await import(bin.href);
else runWith(bundledNode());

/** @returns {string} */
function bundledNode() {
  const name = `node-linux-${process.arch}`;
  try {
    return join(
      dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)),
      'bin/node',
    );
  } catch {
    process.stderr.write(
      `tabern: needs Node ${MAJOR}, or the package ${name}; ` + `this is Node ${process.version}\n`,
    );
    process.exit(EXIT_OPERATOR);
  }
}

/** @param {string} node */
function runWith(node) {
  const words = [...process.execArgv, fileURLToPath(bin), ...process.argv.slice(2)];
  const child = spawn(node, words, { stdio: 'inherit' });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  const pass = (signal) => child.kill(signal);
  for (const signal of signals) process.on(signal, pass);
  child.on('error', (error) => {
    process.stderr.write(`tabern: cannot start ${node}: ${error.message}\n`);
    process.exit(EXIT_OPERATOR);
  });
  child.on('exit', (code, signal) => {
    for (const one of signals) process.off(one, pass);
    if (signal) process.kill(process.pid, signal);
    else process.exit(code ?? 1);
  });
}
