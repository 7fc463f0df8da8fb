
'use strict';
const byId = id => document.getElementById(id);
const plot = byId('plot'), axis = byId('axis'), unit = byId('unit'), steps = byId('steps');
const chart = plot.ownerSVGElement;
const number = (node, name) => Number(node.getAttribute(name));
const left = number(plot, 'x'), bottom = number(plot, 'y') + number(plot, 'height');
const height = number(plot, 'height'), chartHeight = number(chart, 'height');
// The drawing's own width: bars lie at 0 to this, however wide the plot is shown.
const drawn = number(plot, 'width'), right = number(chart, 'width') - left - drawn;
const span = Number(plot.dataset.span), room = Number(steps.dataset.room);
const lineRoom = Number(steps.dataset.lineRoom);
const lines = [...plot.querySelectorAll('.step')];
const labelY = number(plot, 'y') - 6;
// Pixels of the plot, and at least so many; the part of the drawing in view.
let width = drawn, from = 0, view = drawn;
const leastWidth = 420;

function text(parent, x, y, words, anchor) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', 'text');
  node.setAttribute('x', x);
  node.setAttribute('y', y);
  node.setAttribute('text-anchor', anchor);
  node.textContent = words;
  parent.append(node);
}

function drawAxis() {
  const began = from / drawn * span, shown = view / drawn * span;
  const least = Math.max(1, shown / Math.floor(width / 100));
  const decade = 10 ** Math.floor(Math.log10(least));
  const tick = decade * [1, 2, 5, 10].find(f => f * decade >= least);
  const [name, scale] = shown < 1e4 ? ['ns', 1] : shown < 1e7 ? ['us', 1e3]
    : shown < 1e10 ? ['ms', 1e6] : ['s', 1e9];
  axis.replaceChildren();
  for (let i = Math.ceil(began / tick); i * tick <= began + shown; i++) {
    const x = left + (i * tick - began) / shown * width;
    text(axis, x, bottom + 18, String(Number((i * tick / scale).toPrecision(12))), 'middle');
  }
  unit.textContent = `time [${name}]`;
}

function drawSteps() {
  steps.replaceChildren();
  let free = -Infinity, freeLine = -Infinity;
  for (const line of lines) {
    const x = (Number(line.dataset.x) - from) / view * width;
    line.style.display = x < freeLine ? 'none' : '';
    if (x >= freeLine) freeLine = x + lineRoom;
    if (x < -0.5 || x + room > width + right || x < free) continue;
    free = x + room;
    text(steps, left + x, labelY, line.dataset.step, 'start');
  }
}

function draw() {
  view = Math.min(drawn, Math.max(drawn * 1e-5, view));
  from = Math.min(drawn - view, Math.max(0, from));
  plot.setAttribute('viewBox', `${from} 0 ${view} ${height}`);
  drawAxis();
  drawSteps();
}

function fill() {
  width = Math.max(leastWidth, document.documentElement.clientWidth - left - right);
  const whole = left + width + right;
  chart.setAttribute('width', whole);
  chart.setAttribute('viewBox', `0 0 ${whole} ${chartHeight}`);
  plot.setAttribute('width', width);
  unit.setAttribute('x', left + width);
  draw();
}

plot.addEventListener('wheel', event => {
  event.preventDefault();
  const at = (event.clientX - plot.getBoundingClientRect().left) / width;
  const before = view;
  view = Math.min(drawn, Math.max(drawn * 1e-5, view * 1.0015 ** event.deltaY));
  from += at * (before - view);
  draw();
}, { passive: false });

let held = null;
plot.addEventListener('pointerdown', event => {
  held = event.clientX;
  plot.setPointerCapture(event.pointerId);
});
plot.addEventListener('pointermove', event => {
  if (held === null) return;
  from -= (event.clientX - held) / width * view;
  held = event.clientX;
  draw();
});
plot.addEventListener('pointerup', () => { held = null; });
plot.addEventListener('pointercancel', () => { held = null; });
plot.addEventListener('dblclick', () => { from = 0; view = drawn; draw(); });
new ResizeObserver(fill).observe(document.body);
fill();
