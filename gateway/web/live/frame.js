/** The browser frame: tabs and an address bar. Text of pages is only ever shown as text. */

export function openFrame({ elements, send, isReadOnly }) {
  const { frame, tabs, back, forward, reload, address } = elements;
  frame.hidden = false;
  address.readOnly = isReadOnly;
  for (const button of [back, forward, reload]) button.disabled = isReadOnly;
  back.onclick = () => send({ type: 'history', by: -1 });
  forward.onclick = () => send({ type: 'history', by: 1 });
  reload.onclick = () => send({ type: 'reload' });
  let shownUrl = '';
  address.onfocus = () => address.select();
  address.onblur = () => {
    address.value = shownUrl;
  };
  // Not a form: a sandboxed frame may not submit one.
  address.onkeydown = (event) => {
    if (event.key === 'Escape') address.blur();
    if (event.key !== 'Enter' || isReadOnly || address.value.trim() === '') return;
    send({ type: 'navigate', url: addressOf(address.value) });
    address.blur();
  };
  return {
    show(open) {
      tabs.replaceChildren(...open.map((tab) => tabOf(tab, { send, isReadOnly })));
      shownUrl = open.find((tab) => tab.isShown)?.url ?? '';
      if (document.activeElement !== address) address.value = shownUrl;
    },
  };
}

function tabOf({ id, title, url, isShown }, { send, isReadOnly }) {
  const button = document.createElement('button');
  button.type = 'button';
  button.role = 'tab';
  button.ariaSelected = String(isShown);
  button.textContent = title || url || 'New tab';
  button.title = url;
  button.disabled = isReadOnly && !isShown;
  button.onclick = () => send({ type: 'tab', id });
  return button;
}

/** Adds a missing scheme to the typed URL. */
export function addressOf(typed) {
  const text = typed.trim();
  const isHostAndPort = /^[\w.-]+:\d+(?:[/?#]|$)/.test(text);
  if (/^[a-z][a-z0-9+.-]*:/i.test(text) && !isHostAndPort) return text;
  const isLocal = /^(?:localhost|\d+\.\d+\.\d+\.\d+|\[[\da-f:]+\])(?:[:/?#]|$)/i.test(text);
  return `${isLocal ? 'http' : 'https'}://${text}`;
}
