/** Search, copy buttons and the theme switch of the guide. Requests go to this service only. */
const RESULTS_MAX = 8;
const TEXT_MAX_CHARS = 140;

const input = document.querySelector('#search');
const found = document.querySelector('#found');
let index;

/** Loads the index at the first use. */
async function loadIndex() {
  const answer = await fetch('/docs/search.json');
  const search = new window.MiniSearch({
    fields: ['page', 'heading', 'text'],
    storeFields: ['page', 'heading', 'text'],
    searchOptions: {
      boost: { heading: 3, page: 2 },
      prefix: true,
      fuzzy: 0.15,
      combineWith: 'AND',
    },
  });
  search.addAll(await answer.json());
  return search;
}

async function showResults() {
  index ??= loadIndex();
  const results = (await index).search(input.value).slice(0, RESULTS_MAX);
  found.replaceChildren(...results.map(resultItem));
  found.hidden = input.value.trim() === '';
  if (results.length === 0) {
    const none = document.createElement('li');
    none.textContent = 'Nothing found';
    found.append(none);
  }
}

function resultItem({ id, page, heading, text }) {
  const link = document.createElement('a');
  link.href = id;
  const title = document.createElement('strong');
  title.textContent = heading === page ? page : `${page}: ${heading}`;
  const excerpt = document.createElement('span');
  excerpt.textContent = text.slice(0, TEXT_MAX_CHARS);
  link.append(title, excerpt);
  const item = document.createElement('li');
  item.append(link);
  return item;
}

function moveFocus(step) {
  const links = [...found.querySelectorAll('a')];
  const at = links.indexOf(document.activeElement) + step;
  (at < 0 ? input : links[Math.min(at, links.length - 1)])?.focus();
}

input.addEventListener('input', showResults);
input.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') found.querySelector('a')?.click();
});
document.addEventListener('keydown', (event) => {
  const isTyping = event.target === input;
  if (event.key === '/' && !isTyping) {
    event.preventDefault();
    input.focus();
  }
  if (event.key === 'Escape') {
    found.hidden = true;
    input.blur();
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && !found.hidden) {
    event.preventDefault();
    moveFocus(step);
  }
});
document.addEventListener('click', (event) => {
  if (!event.target.closest('.search') || event.target.closest('#found a')) found.hidden = true;
});

for (const block of document.querySelectorAll('pre')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(block.querySelector('code').textContent);
    button.textContent = 'Copied';
    setTimeout(() => {
      button.textContent = 'Copy';
    }, 1_500);
  });
  block.append(button);
}

document.querySelector('#theme').addEventListener('click', () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = isDark ? 'light' : 'dark';
  localStorage.setItem('tabern-docs-theme', root.dataset.theme);
});

/** On a narrow screen the list of pages is folded. */
if (matchMedia('(max-width: 60rem)').matches) document.querySelector('.pages').open = false;
