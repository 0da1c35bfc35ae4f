/** A handoff: what the person is asked to do, and the button that says that it is done. */

export function openHandoff({ byId, send, isReadOnly }) {
  const [box, instructions, done] = ['handoff', 'instructions', 'done'].map(byId);
  let id;
  done.hidden = isReadOnly;
  done.onclick = () => {
    done.disabled = true;
    send({ type: 'done', id });
  };
  return {
    /** The service has not heard of it, or its end is on the way. */
    again() {
      done.disabled = false;
    },
    /** null: there is none, or it has ended. */
    show(handoff) {
      box.hidden = handoff === null;
      if (handoff === null) return;
      id = handoff.id;
      instructions.textContent = handoff.instructions;
      done.disabled = false;
    },
  };
}
