/**
 * Checks each response of a service against its published description: status, body and route must
 * be described, and the body has no undescribed field. A violation fails the test that sent the
 * request when its service ends.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { must } from '../../../proto/common/must.ts';

type Json = { [key: string]: unknown };
type Content = Record<string, { schema?: Json } | undefined>;
type Response = { content?: Content };
type Operation = { responses: Record<string, Response | undefined> };
export type Description = {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Json> };
};

/** `text` is undefined when it is not JSON, or too long to check. */
export type Seen = {
  method: string;
  path: string;
  status: number;
  type: string;
  text: string | undefined;
};

export type Judge = {
  /** The violation in a response; undefined without one. */
  verdict(seen: Seen): string | undefined;
};

/** Statuses of responses to unknown routes. */
const UNROUTED: readonly number[] = [404, 405, 501];
/** Statuses of responses to unreadable requests, which have no method (gateway/http/errors.ts). */
const UNREADABLE: readonly number[] = [400, 408, 413, 431];
const ERROR = ['components', 'schemas', 'Error'];
/** Before the path of a request that an operator login makes for a project. */
const NAMED_PROJECT = /^\/console\/api\/v1\/as\/[^/]+(?=\/)/;
const SHOWN_CHARS = 2_000;
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;

export function openJudge(description: Description): Judge {
  const ajv = new Ajv2020({ strict: false, allErrors: false });
  ajv.addFormat('date-time', DATE_TIME);
  ajv.addFormat('binary', true);
  ajv.addSchema(closed(description) as Json, 'api');
  const routes = Object.entries(description.paths).map(([template, verbs]) => {
    const pattern = template.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+');
    return { template, verbs, pattern: new RegExp(`^${pattern}$`) };
  });
  // literal paths before parameters, as in the router
  routes.sort((a, b) => a.template.split('{').length - b.template.split('{').length);
  const compiled = new Map<string, ValidateFunction>();

  function validatorOf(pointer: readonly string[]): ValidateFunction {
    const path = pointer.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1'));
    const ref = `api#/${path.map(encodeURIComponent).join('/')}`;
    const known = compiled.get(ref) ?? ajv.compile({ $ref: ref });
    compiled.set(ref, known);
    return known;
  }

  /** The violations of a text against the schema at that place. */
  function wrong(text: string, pointer: readonly string[]): string | undefined {
    const validate = validatorOf(pointer);
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch (error) {
      return `${String(error)} in ${text.slice(0, SHOWN_CHARS)}`;
    }
    if (validate(body)) return undefined;
    return `${ajv.errorsText(validate.errors)} in ${text.slice(0, SHOWN_CHARS)}`;
  }

  return {
    verdict({ method, path, status, type, text }) {
      const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
      const served = path.replace(NAMED_PROJECT, '');
      const route = routes.find(({ pattern, verbs }) => pattern.test(served) && verb in verbs);
      const where = `${method} ${path}: ${status}`;
      if (route === undefined) {
        if (!(method === '' ? UNREADABLE : UNROUTED).includes(status)) {
          return `${where}: no such route is described`;
        }
        const fault = text === '' ? undefined : wrong(text ?? type, ERROR);
        return fault && `${where}: ${fault}`;
      }
      const { responses } = must(route.verbs[verb], 'an operation');
      const name = String(status) in responses ? String(status) : 'default';
      const response = responses[name];
      if (response === undefined) return `${where}: no such status is described`;
      if (name === 'default' && status < 400) return `${where}: a success that is not described`;
      const contentType = type.split(';')[0] ?? '';
      if (text === '') return undefined;
      const content = response.content?.[contentType];
      if (content === undefined) return `${where}: ${contentType} is not described`;
      if (text === undefined || contentType !== 'application/json') return undefined;
      if (content.schema === undefined) return undefined;
      const of = ['paths', route.template, verb, 'responses', name];
      const fault = wrong(text, [...of, 'content', contentType, 'schema']);
      return fault && `${where}: ${fault}`;
    },
  };
}

/** The same schema; an object that lists its members allows no others. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const shown = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, closed(one)]));
  const isOpen = shown['type'] === 'object' && 'properties' in shown;
  return isOpen && !('additionalProperties' in shown)
    ? { ...shown, additionalProperties: false }
    : shown;
}
