/** A page whose code is loaded when it is opened first. */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Failure } from './load.tsx';

/** A component in place of the loaded one. An asset that is gone belongs to another release. */
export function lazy<P extends object>(
  load: () => Promise<ComponentType<P>>,
): (props: P) => ReturnType<typeof Waiting> {
  let loaded: ComponentType<P> | undefined;
  return function Lazy(props: P) {
    const [isFailed, setFailed] = useState(false);
    const [, setLoaded] = useState(() => loaded); // a component is a function
    useEffect(() => {
      if (loaded !== undefined) return;
      load().then(
        (component) => {
          loaded = component;
          setLoaded(() => component);
        },
        () => setFailed(true),
      );
    }, []);
    const Page = loaded;
    if (Page !== undefined) return <Page {...props} />;
    return <Waiting isFailed={isFailed} />;
  };
}

function Waiting({ isFailed }: { isFailed: boolean }) {
  if (!isFailed) return <p class="hint">Reading…</p>;
  return (
    <Failure
      error="This page could not be loaded. The service may be away, or of a newer version."
      again={() => location.reload()}
    />
  );
}
