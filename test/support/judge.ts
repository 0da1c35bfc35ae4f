/**
 * Holds each answer of a service against its own published description: a status that is not
 * described, a body that is not as described, a field that nobody describes, a route that is not
 * there. What is found fails the test that asked, when its service ends.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { must } from '../../proto/must.ts';

type Json = { [key: string]: unknown };
type Content = Record<string, { schema?: Json } | undefined>;
type Response = { content?: Content };
type Operation = { responses: Record<string, Response | undefined> };
export type Description = {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Json> };
};

export type Seen = { method: string; path: string; status: number; type: string; text: string };

export type Judge = {
  /** What is wrong with an answer; undefined when nothing is. */
  verdict(seen: Seen): string | undefined;
};

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
  // Literal paths before parameters, as the router has them.
  routes.sort((a, b) => a.template.split('{').length - b.template.split('{').length);
  const compiled = new Map<string, ValidateFunction>();

  function validatorOf(pointer: readonly string[]): ValidateFunction {
    const path = pointer.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1'));
    const ref = `api#/${path.map(encodeURIComponent).join('/')}`;
    const known = compiled.get(ref) ?? ajv.compile({ $ref: ref });
    compiled.set(ref, known);
    return known;
  }

  return {
    verdict({ method, path, status, type, text }) {
      const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
      const route = routes.find(({ pattern, verbs }) => pattern.test(path) && verb in verbs);
      const where = `${method} ${path}: ${status}`;
      if (route === undefined) {
        return status === 404 || status === 405
          ? undefined
          : `${where}: no such route is described`;
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
      if (contentType !== 'application/json' || content.schema === undefined) return undefined;
      const of = ['paths', route.template, verb, 'responses', name];
      const validate = validatorOf([...of, 'content', contentType, 'schema']);
      if (validate(JSON.parse(text))) return undefined;
      return `${where}: ${ajv.errorsText(validate.errors)} in ${text.slice(0, 2_000)}`;
    },
  };
}

/** The same, with every object that names its members closed. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const shown = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, closed(one)]));
  const isOpen = shown['type'] === 'object' && 'properties' in shown;
  return isOpen && !('additionalProperties' in shown)
    ? { ...shown, additionalProperties: false }
    : shown;
}
