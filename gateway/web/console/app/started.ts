/** Why the console could not start; undefined when it could. */
import { signal } from '@preact/signals';

export const failure = signal<string | undefined>(undefined);
