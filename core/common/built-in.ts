/**
 * The service's own function and the project that owns it. Any project's one-shots are invocations
 * of it: they belong to the project that asks, and the function to none of those, so that no
 * project's key lists, invokes, deletes or replaces it.
 */

/** In the stored spelling; no clock makes these ids. */
export const BUILT_IN = {
  projectId: '00000000-0000-7000-8000-000000000000',
  /** With a control character, which no operator's name has. */
  projectName: '\tbuilt in',
  functionId: '00000000-0000-7000-8000-000000000001',
  functionName: 'one-shots',
} as const;
