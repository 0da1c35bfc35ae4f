/**
 * What a user imports: `import { defineFn } from "tabern"`. Builds put this module in place of the
 * published SDK too.
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
