/** The keys that act on the page that is shown. */

import { Dialog } from '../parts/dialog.tsx';
import { active } from '../parts/keys.tsx';

const SIGNS: Record<string, string> = {
  ArrowDown: '↓',
  ArrowUp: '↑',
  ArrowLeft: '←',
  ArrowRight: '→',
  'Shift+ArrowLeft': 'Shift ←',
  'Shift+ArrowRight': 'Shift →',
};

export function Help({ close }: { close: () => void }) {
  const byKey = new Map(active.value.flat().map(({ keys, does }) => [keys, does]));
  return (
    <Dialog label="Keys" close={close}>
      <h2>Keys</h2>
      <dl class="keys">
        {[...byKey].map(([keys, does]) => (
          <div key={keys}>
            <dt>
              {keys.split(' or ').map((one, index) => (
                <span key={one}>
                  {index > 0 && ' or '}
                  {one.split(' ').map((key) => (
                    <kbd key={key}>{SIGNS[key] ?? key}</kbd>
                  ))}
                </span>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={close}>
        Close
      </button>
    </Dialog>
  );
}
