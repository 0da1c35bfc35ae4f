/**
 * The public API of the SDK: `import { defineFn } from "tabern"`. Builds also replace the published
 * SDK with this module.
 */
export { defineFn } from './registry.ts';
export type {
  FunctionConfig,
  FunctionContext,
  Handler,
  JsonValue,
  ParametersSchema,
  SessionConfig,
} from './types.ts';
