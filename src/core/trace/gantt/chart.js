// @ts-check
'use strict';
// Draws charts of runs on canvases, one below the other on one time axis, as `data.rs` describes
// them. Times are nanoseconds from the run's begin.

/** A figure with three digits, in the greatest of the units that is not above it.
 * @param {number} value @param {[number, string][]} units */
function scaled(value, units) {
  const [scale, unit] = units.find(([scale]) => Math.abs(value) >= scale * 0.9995)
    ?? units[units.length - 1];
  const of = value / scale, size = Math.abs(of);
  return `${of.toFixed(size === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)} ${unit}`;
}
/** @param {number} nanos */
const duration = nanos => scaled(nanos, [[1e9, 's'], [1e6, 'ms'], [1e3, 'us'], [1, 'ns']]);
/** @param {number} bytes */
const memory = bytes => bytes < 1024 ? `${bytes} B`
  : scaled(bytes, [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']]);

/** A new element. @param {string} name @param {Object<string, any>} [properties]
 * @param {...(Node | string)} children @returns {any} */
function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

/** The colours of the reader's scheme, by those of the light one: as the style has them for SVG. */
const themed = (() => {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const rect = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  // A page of strict rules takes no style in markup.
  Object.assign(svg.style, { position: 'absolute', width: '0', height: '0' });
  svg.setAttribute('aria-hidden', 'true');
  svg.append(rect);
  /** @type {Map<string, string>} */
  const known = new Map(), dark = matchMedia('(prefers-color-scheme: dark)');
  return (/** @type {string} */ colour) => {
    let found = dark.matches ? known.get(colour) : colour;
    if (!found) {
      if (!svg.isConnected) document.body.append(svg);
      rect.setAttribute('fill', colour);
      found = getComputedStyle(rect).fill;
      known.set(colour, found);
    }
    return found;
  };
})();

const TEXT = '#24292f', MUTED = '#57606a', PAPER = '#ffffff', PLOT = '#f6f8fa';
const KERNELS = '#6e7781', COPIES = '#c3c9d0', STEP = '#8c959f', PLAN = '#9a6700';
const FONT = "system-ui, 'DejaVu Sans', sans-serif";
/** Pixels on the right of a plot, between its names and itself, and least of a plot. */
const RIGHT = 24, BESIDE = 8, LEAST = 160;
const HELP = 'Drag: move. Ctrl and wheel, or + and -: zoom. Double click, or 0: everything. '
  + 'Arrow keys: from command to command.';

class Charts {
  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.parent = parent;
    /** @type {any} */
    this.data = { charts: [] };
    /** @type {any[]} */
    this.sections = [];
    this.from = 0;
    this.to = 1;
    this.left = this.width = 0;
    this.waits = false;
    new ResizeObserver(() => this.redraw()).observe(parent);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
  }

  /** Shows other runs, all of them. @param {any} data */
  show(data) {
    this.data = data;
    while (this.sections.length > data.charts.length) this.sections.pop().node.remove();
    while (this.sections.length < data.charts.length) this.sections.push(this.section());
    data.charts.forEach((/** @type {any} */ chart, /** @type {number} */ i) => {
      const section = this.sections[i];
      section.chart = chart;
      section.picked = null;
      section.title.textContent = chart.title;
      section.subtitle.textContent = chart.subtitle;
      section.legend.replaceChildren(...chart.legend.map((/** @type {any} */ item) => {
        const swatch = element('i', { className: item.swatch, ariaHidden: 'true' });
        swatch.dataset.colour = item.colour;
        return element('li', {}, swatch, item.words);
      }));
      section.canvas.ariaLabel = `${chart.title}: ${chart.subtitle}. ${HELP}`;
      const cells = (/** @type {string[]} */ line, /** @type {string} */ name) =>
        element('tr', {}, ...line.map(words => element(name, {}, words)));
      section.table.replaceChildren(...(chart.table ? [cells(chart.table.header, 'th'),
        ...chart.table.rows.map((/** @type {string[]} */ row) => cells(row, 'td'))] : []));
      section.notes.replaceChildren(...chart.notes.map(
        (/** @type {string} */ note) => element('p', {}, note)));
    });
    this.everything();
  }

  everything() {
    const all = (/** @type {string} */ end) => Math.max(0, ...this.data.charts.map(
      (/** @type {any} */ chart) => chart[end]));
    this.from = -all('lead');
    this.to = Math.max(all('after'), this.from + 1);
    this.redraw();
  }

  /** Draws all soon, once. */
  redraw() {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      this.draw();
    });
  }

  draw() {
    const width = this.parent.clientWidth;
    const context = this.sections[0]?.canvas.getContext('2d');
    if (!context || width === 0) return;
    context.font = `bold 12px ${FONT}`;
    const wide = (/** @type {string} */ words) => context.measureText(words).width;
    // A strip's name and its figure share a line, where there is room.
    let names = 0, labels = wide('step');
    for (const { rows, strips } of this.data.charts) {
      for (const strip of strips) {
        names = Math.max(names, wide(strip.device));
        labels = Math.max(labels, wide(strip.label));
      }
      for (const row of rows) labels = Math.max(labels, wide(row.label));
    }
    this.left = Math.min(Math.ceil(names + 12 + labels) + BESIDE, Math.floor(width * 0.4));
    this.width = Math.max(LEAST, width - this.left - RIGHT);
    for (const section of this.sections) this.drawOne(section);
  }

  /** @param {number} at */
  x(at) {
    return this.left + (at - this.from) / (this.to - this.from) * this.width;
  }

  /** @param {any} section */
  drawOne(section) {
    const { chart, canvas } = section, { left, width } = this;
    const [rowHeight, kernelHeight, copyHeight, line, bottom] = this.data.heights;
    const x = (/** @type {number} */ at) => this.x(at), right = left + width;
    const top = section.top = line * (chart.marks.length + 1) + 6;
    const high = top + chart.height + bottom, ratio = devicePixelRatio || 1;
    canvas.width = Math.round((right + RIGHT) * ratio);
    canvas.height = Math.round(high * ratio);
    canvas.style.width = `${right + RIGHT}px`;
    canvas.style.height = `${high}px`;
    for (const swatch of section.legend.querySelectorAll('i')) {
      swatch.style.setProperty('--colour', themed(swatch.dataset.colour));
    }
    const context = canvas.getContext('2d');
    context.scale(ratio, ratio);
    const font = (/** @type {string} */ weight) => { context.font = `${weight} 12px ${FONT}`; };
    const box = (/** @type {string} */ colour, /** @type {number[]} */ [at, y, wide, tall]) => {
      context.fillStyle = themed(colour);
      context.fillRect(at, y, wide, tall);
    };
    const write = (/** @type {string} */ words, /** @type {number} */ at, /** @type {number} */ y,
      align = 'left', colour = TEXT, most = Infinity) => {
      let shown = words;
      while (shown.length > 2 && context.measureText(shown).width > most) {
        shown = `${shown.slice(0, shown.length - 2 - (shown.endsWith('…') ? 1 : 0))}…`;
      }
      context.textAlign = align;
      context.fillStyle = themed(colour);
      context.fillText(shown, at, y);
    };
    const stroke = (/** @type {string} */ colour, /** @type {number} */ wide,
      /** @type {number[][]} */ lines) => {
      context.strokeStyle = themed(colour);
      context.lineWidth = wide;
      context.beginPath();
      for (const [x1, y1, x2, y2] of lines) {
        context.moveTo(x1, y1);
        context.lineTo(x2, y2);
      }
      context.stroke();
    };

    box(PAPER, [0, 0, right + RIGHT, high]);
    box(PLOT, [left, top, width, chart.height]);
    const baseline = (/** @type {number} */ of) => top + of + rowHeight * 2 / 3;
    for (const strip of chart.strips) {
      font('bold');
      const figure = context.measureText(strip.label).width, room = left - BESIDE - figure - 6;
      if (room > 40) write(strip.device, 0, baseline(strip.top), 'left', TEXT, room - 6);
      font('normal');
      write(strip.label, left - BESIDE, baseline(strip.top), 'right', TEXT,
        room > 40 ? Infinity : left - BESIDE);
    }
    font('normal');
    for (const row of chart.rows) {
      write(row.label, left - BESIDE, baseline(row.top), 'right', MUTED, left - BESIDE);
    }
    write('step', left - BESIDE, top - 6, 'right', MUTED);

    context.save();
    context.beginPath();
    context.rect(left, top, width, chart.height);
    context.clip();
    for (const strip of chart.strips) {
      const upper = top + strip.top + (rowHeight - kernelHeight) / 2;
      const begin = x(strip.begin), end = x(strip.begin + strip.length);
      box(PAPER, [begin, upper, end - begin, kernelHeight]);
      for (const [colour, parts] of [[COPIES, strip.busy], [KERNELS, strip.kernels]]) {
        const wide = (end - begin) / parts.length;
        context.fillStyle = themed(colour);
        context.beginPath();
        context.moveTo(begin, upper + kernelHeight);
        parts.forEach((/** @type {number} */ part, /** @type {number} */ i) => {
          const y = upper + kernelHeight * (1 - part / 1000);
          context.lineTo(begin + i * wide, y);
          context.lineTo(begin + (i + 1) * wide, y);
        });
        context.lineTo(end, upper + kernelHeight);
        context.fill();
      }
    }
    const palette = this.data.palette.map((/** @type {any} */ entry) => ({
      colour: themed(entry.colour), height: entry.kernels ? kernelHeight : copyHeight,
    }));
    for (const row of chart.rows) this.bars(context, row, top + row.top, rowHeight, palette);
    context.globalAlpha = 0.35;
    const middle = (/** @type {number} */ row) => top + chart.rows[row].top + rowHeight / 2;
    stroke(TEXT, 0.7, chart.flows.map((/** @type {number[]} */ [ended, from, started, to]) =>
      [x(ended), middle(from), x(started), middle(to)]));
    context.globalAlpha = 1;
    let free = -Infinity;
    const steps = chart.steps.map((/** @type {number[]} */ step) => x(step[0]))
      .filter((/** @type {number} */ at) => at >= free && ((free = at + 12), true));
    context.setLineDash([3, 3]);
    stroke(STEP, 1, steps.map((/** @type {number} */ at) => [at, top, at, top + chart.height]));
    context.setLineDash([]);
    for (const { step } of chart.plans) {
      if (chart.steps[step]) {
        const at = x(chart.steps[step][0]);
        stroke(PLAN, 3, [[at, top, at, top + 8]]);
      }
    }
    for (const mark of chart.marks) {
      const at = x(mark.at);
      stroke(mark.colour, 1.5, [[at, top, at, top + chart.height]]);
    }
    if (section.picked) {
      const { row, at } = section.picked, began = x(row.began[at]);
      context.strokeStyle = themed(TEXT);
      context.lineWidth = 2;
      context.strokeRect(began - 1, top + row.top + 1, Math.max(3, x(row.began[at] + row.length[at])
        - began + 2), rowHeight - 2);
    }
    context.restore();

    chart.marks.forEach((/** @type {any} */ mark, /** @type {number} */ i) => {
      const at = x(mark.at), y = i * line;
      if (at < left - 0.5 || at > right + 0.5) return;
      const before = at > left + width / 2;
      stroke(mark.colour, 1, [[at, y, at, top]]);
      write(mark.words, at + (before ? -4 : 4), y + 11, before ? 'right' : 'left', mark.colour,
        before ? at - 4 : right + RIGHT - at - 4);
    });
    free = -Infinity;
    chart.steps.forEach((/** @type {number[]} */ step, /** @type {number} */ i) => {
      const at = x(step[0]);
      if (at < free || at < left - 0.5 || at + 40 > right + RIGHT) return;
      free = at + 40;
      write(String(i), at, top - 6, 'left', MUTED);
    });
    this.axis(write, stroke, top + chart.height);
  }

  /** Draws the bars of a row; those that share a pixel as one, paler the more of it is idle.
   * @param {CanvasRenderingContext2D} context @param {any} row @param {number} top
   * @param {number} high @param {any[]} palette */
  bars(context, row, top, high, palette) {
    const { began, length, entry, several } = row, scale = this.width / (this.to - this.from);
    const draw = (/** @type {number} */ of, /** @type {number} */ at, /** @type {number} */ wide,
      /** @type {number} */ density) => {
      const { colour, height } = palette[of];
      context.globalAlpha = Math.max(0.2, Math.min(1, density));
      context.fillStyle = colour;
      context.fillRect(at, top + (high - height) / 2, wide, height);
    };
    let pixel = NaN, sum = 0, longest = 0, shown = 0;
    const flush = () => {
      if (sum > 0) draw(shown, pixel, 1, sum);
      sum = longest = 0;
    };
    for (let i = 0; i < began.length; i++) {
      const start = this.left + (began[i] - this.from) * scale, wide = length[i] * scale;
      if (start + wide < this.left || start > this.left + this.width) continue;
      const busy = several[i]
        ? several[i].reduce((/** @type {number} */ all, /** @type {number[]} */ part) => all + part[2], 0)
          / Math.max(1, length[i]) : 1;
      if (wide >= 1) {
        draw(entry[i], start, wide, busy);
        continue;
      }
      if (Math.floor(start) !== pixel) {
        flush();
        pixel = Math.floor(start);
      }
      // Even the shortest bar stays visible.
      const own = Math.max(wide, 0.05) * busy;
      sum += own;
      if (own > longest) [longest, shown] = [own, entry[i]];
    }
    flush();
    context.globalAlpha = 1;
  }

  /** @param {Function} write @param {Function} stroke @param {number} y */
  axis(write, stroke, y) {
    const shown = this.to - this.from;
    const least = Math.max(1, shown / Math.max(1, Math.floor(this.width / 100)));
    const decade = 10 ** Math.floor(Math.log10(least));
    const tick = decade * ([1, 2, 5].find(factor => factor * decade >= least) ?? 10);
    const [name, scale] = /** @type {[string, number]} */ (shown < 1e4 ? ['ns', 1]
      : shown < 1e7 ? ['us', 1e3] : shown < 1e10 ? ['ms', 1e6] : ['s', 1e9]);
    for (let i = Math.ceil(this.from / tick); i * tick <= this.to; i++) {
      const at = this.x(i * tick);
      stroke(MUTED, 1, [[at, y, at, y + 5]]);
      write(String(Number((i * tick / scale).toPrecision(12))), at, y + 18, 'center', MUTED);
    }
    write(`time [${name}]`, this.left + this.width, y + 36, 'right', MUTED);
  }

  /** Shows times around one of them, so many times as long. @param {number} factor
   * @param {number} at */
  zoom(factor, at) {
    const all = this.whole(), least = Math.max(10, (all[1] - all[0]) * 1e-5);
    const length = Math.min(all[1] - all[0], Math.max(least, (this.to - this.from) * factor));
    const part = (at - this.from) / (this.to - this.from);
    this.move(at - part * length, length);
  }

  /** @param {number} from @param {number} length */
  move(from, length) {
    const all = this.whole();
    this.from = Math.min(all[1] - length, Math.max(all[0], from));
    this.to = this.from + length;
    this.redraw();
  }

  whole() {
    const { charts } = this.data;
    const lead = Math.max(0, ...charts.map((/** @type {any} */ chart) => chart.lead));
    return [-lead, Math.max(1 - lead, ...charts.map((/** @type {any} */ chart) => chart.after))];
  }

  /** What lies at a place of the canvas, in words, with the bar if it is one.
   * @param {any} section @param {number} px @param {number} py */
  at(section, px, py) {
    const { chart, top } = section, [rowHeight] = this.data.heights, y = py - top;
    const within = (/** @type {any} */ one) => y >= one.top && y < one.top + rowHeight;
    const mark = chart.marks.find((/** @type {any} */ one) => Math.abs(this.x(one.at) - px) < 3);
    if (mark) return { words: `${mark.words}\n${mark.meaning}` };
    const strip = chart.strips.find(within);
    if (strip) return { words: `${strip.device}: ${strip.label} ${strip.meaning}` };
    const plan = y >= 0 && y < 10 && chart.plans.find((/** @type {any} */ { step }) =>
      chart.steps[step] && Math.abs(this.x(chart.steps[step][0]) - px) < 3);
    if (plan) return { words: `step ${plan.step}: ${plan.what}` };
    const row = chart.rows.find(within);
    if (!row || px < this.left) return null;
    const near = (/** @type {number} */ i) => {
      const began = this.x(row.began[i]), ended = this.x(row.began[i] + row.length[i]);
      return px < began ? began - px : px > ended ? px - ended : 0;
    };
    let best = -1, distance = 3;
    for (let i = 0; i < row.began.length; i++) {
      if (near(i) < distance) [best, distance] = [i, near(i)];
    }
    return best < 0 ? null : { words: this.words(chart, row, best), bar: { row, at: best } };
  }

  /** A bar in words. @param {any} chart @param {any} row @param {number} at */
  words(chart, row, at) {
    const { palette } = this.data, parts = row.several[at];
    if (parts) {
      return ['several commands', ...parts.map((/** @type {number[]} */ [entry, number, time]) =>
        `${number} x ${palette[entry].name}: ${duration(time)}`)].join('\n');
    }
    return [chart.words[row.what[at]],
      `step ${row.step[at]}, units ${row.units[at][0]}..${row.units[at][1]}`,
      ...(row.bytes[at] ? [memory(row.bytes[at])] : []),
      `${duration(row.length[at])} after a wait of ${duration(row.wait[at])}`].join('\n');
  }

  /** A place for a chart, with what its user does. */
  section() {
    const title = element('h2'), subtitle = element('p'), legend = element('ul');
    const canvas = element('canvas', { tabIndex: 0 });
    canvas.setAttribute('role', 'img');
    const tip = element('div', { className: 'tip', hidden: true });
    const said = element('div', { className: 'said', ariaLive: 'polite' });
    const table = element('table'), notes = element('div');
    const button = (/** @type {string} */ sign, /** @type {string} */ label,
      /** @type {() => void} */ act) => {
      const made = element('button', { type: 'button', ariaLabel: label, title: label }, sign);
      made.addEventListener('click', act);
      return made;
    };
    const centre = () => (this.from + this.to) / 2;
    const tools = element('div', { className: 'tools' },
      button('−', 'zoom out', () => this.zoom(2, centre())),
      button('+', 'zoom in', () => this.zoom(0.5, centre())),
      button('all', 'show everything', () => this.everything()), element('span', {}, HELP));
    const node = element('section', { className: 'chart' }, title, subtitle, legend, tools,
      element('div', { className: 'drawing' }, canvas, tip), said,
      element('div', { className: 'wide', tabIndex: 0, ariaLabel: 'devices' }, table), notes);
    this.parent.append(node);
    /** @type {any} */
    const section = { node, title, subtitle, legend, canvas, table, notes, chart: null, picked: null, top: 0 };
    /** @type {number | null} */
    let held = null;
    const hover = (/** @type {PointerEvent} */ event) => {
      const found = this.at(section, event.offsetX, event.offsetY);
      tip.hidden = !found;
      if (!found) return;
      tip.textContent = found.words;
      tip.style.left = `${Math.max(0, Math.min(event.offsetX + 12, canvas.clientWidth - tip.offsetWidth))}px`;
      tip.style.top = `${event.offsetY + 16}px`;
    };
    canvas.addEventListener('pointerdown', (/** @type {PointerEvent} */ event) => {
      held = event.clientX;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => {
      if (held === null) {
        hover(event);
        return;
      }
      const length = this.to - this.from;
      this.move(this.from - (event.clientX - held) / this.width * length, length);
      held = event.clientX;
    });
    for (const end of ['pointerup', 'pointercancel']) {
      canvas.addEventListener(end, () => { held = null; });
    }
    canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
    canvas.addEventListener('dblclick', () => this.everything());
    canvas.addEventListener('wheel', (/** @type {WheelEvent} */ event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const part = (event.offsetX - this.left) / this.width;
      this.zoom(1.0015 ** event.deltaY, this.from + part * (this.to - this.from));
    }, { passive: false });
    canvas.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
      const length = this.to - this.from;
      const acts = /** @type {Object<string, () => void>} */ ({
        '+': () => this.zoom(0.5, centre()), '=': () => this.zoom(0.5, centre()),
        '-': () => this.zoom(2, centre()), 0: () => this.everything(),
        Home: () => this.everything(),
        PageUp: () => this.move(this.from - length / 2, length),
        PageDown: () => this.move(this.from + length / 2, length),
        ArrowLeft: () => this.pick(section, 0, -1), ArrowRight: () => this.pick(section, 0, 1),
        ArrowUp: () => this.pick(section, -1, 0), ArrowDown: () => this.pick(section, 1, 0),
      });
      const act = acts[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
      if (!event.key.startsWith('Arrow') || !section.picked) return;
      const { row, at } = section.picked;
      said.textContent = this.words(section.chart, row, at);
      tip.textContent = said.textContent;
      tip.hidden = false;
      tip.style.left = `${Math.max(0, Math.min(this.x(row.began[at]), canvas.clientWidth - tip.offsetWidth))}px`;
      tip.style.top = `${section.top + row.top + 26}px`;
    });
    return section;
  }

  /** Picks the bar so many rows and bars from the picked one. @param {any} section
   * @param {number} rows @param {number} bars */
  pick(section, rows, bars) {
    const all = section.chart.rows.filter((/** @type {any} */ row) => row.began.length > 0);
    if (all.length === 0) return;
    let { row, at } = section.picked ?? { row: all[0], at: -bars };
    const time = row.began[Math.max(0, at)];
    const next = all[Math.min(all.length - 1, Math.max(0, all.indexOf(row) + rows))];
    if (next !== row) {
      // The first that begins no earlier.
      row = next;
      at = row.began.findIndex((/** @type {number} */ began) => began >= time);
      if (at < 0) at = row.began.length - 1;
    }
    at = Math.min(row.began.length - 1, Math.max(0, at + bars));
    section.picked = { row, at };
    const length = this.to - this.from;
    if (row.began[at] < this.from || row.began[at] > this.to) this.move(row.began[at] - length / 2, length);
    this.redraw();
  }
}
