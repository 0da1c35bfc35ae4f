/** Draws the pictures, and finds where on the page a point of the screen is. */

export function openScreen(canvas) {
  const surface = canvas.getContext('2d', { alpha: false });
  let page = { width: 1_280, height: 800 };
  let drawn = Promise.resolve();

  const draw = async (bytes) => {
    const picture = await createImageBitmap(new Blob([bytes], { type: 'image/jpeg' }));
    if (canvas.width !== picture.width) canvas.width = picture.width;
    if (canvas.height !== picture.height) canvas.height = picture.height;
    surface.drawImage(picture, 0, 0);
    picture.close();
  };
  return {
    /** Of the page, in its own pixels. */
    resize(size) {
      page = size;
    },
    /** One after the other. A picture that cannot be read is passed over. */
    draw(bytes) {
      drawn = drawn.then(() => draw(bytes)).catch(() => undefined);
      return drawn;
    },
    /** The point of the page that is under the event. The picture keeps its proportions. */
    pointOf({ clientX, clientY }) {
      const box = canvas.getBoundingClientRect();
      const scale = Math.min(box.width / page.width, box.height / page.height) || 1;
      const left = box.left + (box.width - page.width * scale) / 2;
      const top = box.top + (box.height - page.height * scale) / 2;
      return {
        x: between((clientX - left) / scale, page.width),
        y: between((clientY - top) / scale, page.height),
      };
    },
  };
}

function between(value, max) {
  return Math.round(Math.min(Math.max(value, 0), max - 1));
}
