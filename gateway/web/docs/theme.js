/** Applies the stored theme before the first paint. */
const theme = localStorage.getItem('tabern-docs-theme');
if (theme) document.documentElement.dataset.theme = theme;
