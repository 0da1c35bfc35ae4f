/** Dialogs of the page: alert, confirm, prompt and beforeunload. */

const LEAVE = 'Leave the page? What was changed may not be saved.';

export function openDialog({ byId, send, isReadOnly }) {
  const [box, question, answer] = ['dialog', 'question', 'answer'].map(byId);
  const [cancel, accept] = ['cancel', 'accept'].map(byId);
  const close = (isAccepted) => send({ type: 'dialog', accept: isAccepted, text: answer.value });
  cancel.disabled = isReadOnly;
  accept.disabled = isReadOnly;
  cancel.onclick = () => close(false);
  accept.onclick = () => close(true);
  box.onkeydown = (event) => {
    if (event.key === 'Escape' && !isReadOnly) close(false);
    if (event.key === 'Enter' && event.target === answer && !isReadOnly) close(true);
  };
  return {
    /** null: no dialog is open. */
    show(dialog) {
      box.hidden = dialog === null;
      if (dialog === null) return;
      question.textContent = dialog.message || (dialog.kind === 'beforeunload' ? LEAVE : '');
      answer.hidden = dialog.kind !== 'prompt';
      answer.value = dialog.text;
      cancel.hidden = dialog.kind === 'alert';
      (answer.hidden ? accept : answer).focus();
    },
  };
}
