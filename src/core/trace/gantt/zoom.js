
'use strict';
const number = (node, name) => Number(node.getAttribute(name));
const charts = [...document.querySelectorAll('.chart')].map(chart => {
  const find = selector => chart.querySelector(selector);
  const plot = find('.plot'), steps = find('.steps');
  return {
    chart, plot, steps, axis: find('.axis'), unit: find('.unit'),
    lines: [...plot.querySelectorAll('.step')],
    marks: [...chart.querySelectorAll('.mark')],
    left: number(plot, 'x'), top: number(plot, 'y'),
    height: number(plot, 'height'), chartHeight: number(chart, 'height'),
    room: Number(steps.dataset.room), lineRoom: Number(steps.dataset.lineRoom),
  };
});
// All charts show the same part of one time axis. Bars lie at 0 to `drawn`, however wide
// the plots are shown.
const first = charts[0], left = first.left, drawn = number(first.plot, 'width');
const right = number(first.chart, 'width') - left - drawn;
const span = Number(first.plot.dataset.span), lead = Number(first.plot.dataset.lead);
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

// Where in the plot something of the drawing is shown.
const place = x => (x - from) / view * width;

function drawAxis({ axis, unit, top, height }) {
  const began = from / drawn * span - lead, shown = view / drawn * span;
  const least = Math.max(1, shown / Math.floor(width / 100));
  const decade = 10 ** Math.floor(Math.log10(least));
  const tick = decade * [1, 2, 5, 10].find(f => f * decade >= least);
  const [name, scale] = shown < 1e4 ? ['ns', 1] : shown < 1e7 ? ['us', 1e3]
    : shown < 1e10 ? ['ms', 1e6] : ['s', 1e9];
  axis.replaceChildren();
  for (let i = Math.ceil(began / tick); i * tick <= began + shown; i++) {
    const x = left + (i * tick - began) / shown * width;
    text(axis, x, top + height + 18, String(Number((i * tick / scale).toPrecision(12))), 'middle');
  }
  unit.textContent = `time [${name}]`;
}

function drawSteps({ steps, lines, top, room, lineRoom }) {
  steps.replaceChildren();
  let free = -Infinity, freeLine = -Infinity;
  for (const line of lines) {
    const x = place(Number(line.dataset.x));
    line.style.display = x < freeLine ? 'none' : '';
    if (x >= freeLine) freeLine = x + lineRoom;
    if (x < -0.5 || x + room > width + right || x < free) continue;
    free = x + room;
    text(steps, left + x, top - 6, line.dataset.step, 'start');
  }
}

function drawMarks({ marks }) {
  for (const mark of marks) {
    const x = place(Number(mark.dataset.x)), [line, label] = mark.children;
    const before = x > width / 2;
    mark.style.display = x < -0.5 || x > width + 0.5 ? 'none' : '';
    line.setAttribute('x1', left + x);
    line.setAttribute('x2', left + x);
    label.setAttribute('x', left + x + (before ? -4 : 4));
    label.setAttribute('text-anchor', before ? 'end' : 'start');
  }
}

function draw() {
  view = Math.min(drawn, Math.max(drawn * 1e-5, view));
  from = Math.min(drawn - view, Math.max(0, from));
  for (const one of charts) {
    one.plot.setAttribute('viewBox', `${from} 0 ${view} ${one.height}`);
    drawAxis(one);
    drawSteps(one);
    drawMarks(one);
  }
}

function fill() {
  width = Math.max(leastWidth, document.documentElement.clientWidth - left - right);
  const whole = left + width + right;
  for (const { chart, plot, unit, chartHeight } of charts) {
    chart.setAttribute('width', whole);
    chart.setAttribute('viewBox', `0 0 ${whole} ${chartHeight}`);
    plot.setAttribute('width', width);
    unit.setAttribute('x', left + width);
  }
  draw();
}

let held = null;
for (const { plot } of charts) {
  plot.addEventListener('wheel', event => {
    event.preventDefault();
    const at = (event.clientX - plot.getBoundingClientRect().left) / width;
    const before = view;
    view = Math.min(drawn, Math.max(drawn * 1e-5, view * 1.0015 ** event.deltaY));
    from += at * (before - view);
    draw();
  }, { passive: false });
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
}
new ResizeObserver(fill).observe(document.body);
fill();
