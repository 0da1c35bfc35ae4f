/** The judge of responses finds those that differ from the description, and accepts all others. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { operationsOf, readContract } from '../gateway/rest/operations.ts';
import { describe } from '../gateway/routes/openapi.ts';
import { type Description, openJudge, type Seen } from './support/judge/judge.ts';

const test = suite('judge');

const registry = readContract();
const judge = openJudge(describe(registry, operationsOf(registry)) as Description);
const ERROR = { statusCode: 404, error: 'Not Found', message: 'Context not found.' };
const PROJECT = { id: '01a1fce4-ed84-7600-895f-0cf6ab39edc7', name: 'p', concurrency: 25 };

function verdict(path: string, body: unknown, more: Partial<Seen> = {}): string | undefined {
  const seen = { method: 'GET', status: 200, type: 'application/json; charset=utf-8' };
  return judge.verdict({ ...seen, path, text: JSON.stringify(body), ...more });
}

test('a described response passes: literal paths before parameters, errors everywhere', () => {
  assert.is(verdict('/v1/projects/x', PROJECT), undefined);
  assert.is(verdict('/v1/contexts/x', ERROR, { status: 404 }), undefined);
  assert.is(verdict('/v1/functions/builds', {}), undefined);
  assert.is(verdict('/healthz', { status: 'ok' }), undefined);
  assert.is(verdict('/v1/elsewhere', ERROR, { status: 404 }), undefined);
  assert.is(verdict('/v1/contexts/x', '', { method: 'DELETE', status: 204, text: '' }), undefined);
});

test('a response that differs from the description does not pass', () => {
  const wrong: [string, string | undefined][] = [
    ['must NOT have additional properties', verdict('/v1/projects/x', { ...PROJECT, secret: 1 })],
    ['must be integer', verdict('/v1/projects/x', { ...PROJECT, concurrency: '16' })],
    ['date-time', verdict('/v1/projects/x', { ...PROJECT, createdAt: 'yesterday' })],
    ['required property', verdict('/v1/contexts/x', { statusCode: 404 }, { status: 404 })],
    ['no such route', verdict('/v1/elsewhere', {})],
    ['a success that is not', verdict('/v1/projects/x', PROJECT, { status: 202 })],
    ['text/html is not', verdict('/v1/projects/x', PROJECT, { type: 'text/html' })],
  ];
  for (const [why, said] of wrong) assert.match(said ?? 'nothing', why);
});

test.run();
