/** Dialogs of the page: alert, confirm, prompt and beforeunload. */

const LEAVE = 'Leave the page? What was changed may not be saved.';

export function openDialog({ byId, send, isReadOnly }) {
  const [box, question, answer] = ['dialog', 'question', 'answer'].map(byId);
  const [cancel, accept] = ['cancel', 'accept'].map(byId);
  const say = (isAccepted) => send({ type: 'dialog', accept: isAccepted, text: answer.value });
  cancel.disabled = isReadOnly;
  accept.disabled = isReadOnly;
  cancel.onclick = () => say(false);
  accept.onclick = () => say(true);
  box.onkeydown = (event) => {
    if (event.key === 'Escape' && !isReadOnly) say(false);
    if (event.key === 'Enter' && event.target === answer && !isReadOnly) say(true);
  };
  return {
    /** null: no dialog is open. */
    show(asked) {
      box.hidden = asked === null;
      if (asked === null) return;
      question.textContent = asked.message || (asked.kind === 'beforeunload' ? LEAVE : '');
      answer.hidden = asked.kind !== 'prompt';
      answer.value = asked.text;
      cancel.hidden = asked.kind === 'alert';
      (answer.hidden ? accept : answer).focus();
    },
  };
}
