/** A dialog over the page. Escape and a click outside close it; the focus returns. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

type Props = {
  label: string;
  close: () => void;
  /** A click outside does not close it: it shows what cannot be shown again. */
  stays?: boolean;
  children: ComponentChildren;
};

export function Dialog({ label, close, stays = false, children }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape is the key
    <dialog
      ref={box}
      aria-label={label}
      onClose={close}
      onClick={(event) => {
        if (event.target === box.current && !stays) close();
      }}
    >
      {children}
    </dialog>
  );
}
