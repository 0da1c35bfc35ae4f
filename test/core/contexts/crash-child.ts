/** Replaces a context's content and is killed at a named point: for crash.test.ts. */
import { openStore } from '../../../core/store/thread.ts';

const [dir = '', id = '', projectId = '', blobId = '', crashAt = ''] = process.argv.slice(2);
const onFatal = (error: Error) => {
  throw error;
};
const store = await openStore({ dir, durability: 'full', crashAt, onFatal });
await store.replaceContext({ id, projectId, blobId, at: Date.now() });
process.stdout.write('not killed');
await store.close();
