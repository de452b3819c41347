// Light or dark, as chosen before; loaded before the page is drawn, so that it does not flash.
const chosen = localStorage.getItem("parley-theme");
if (chosen) document.documentElement.dataset.theme = chosen;
