// A click on a chart opens the runs behind the bucket under the pointer; the charts themselves are
// drawn by the Chart.js that django-unfold brings along.
document.addEventListener("click", (event) => {
  const canvas = event.target.closest("canvas[data-links]");
  const chart = canvas && window.Chart && window.Chart.getChart(canvas);
  if (!chart) return;
  const [found] = chart.getElementsAtEventForMode(event, "index", { intersect: false }, true);
  const links = JSON.parse(canvas.dataset.links);
  if (found && links[found.index]) window.location.assign(links[found.index]);
});
