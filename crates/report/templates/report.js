"use strict";
// Sorting, filtering, another baseline, logarithmic axes and trial details. The page is complete without any of it.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const table = document.getElementById("results");
  const each = (selector, action, root = document) => root.querySelectorAll(selector).forEach(action);
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const number = (value, column) => {
    const text = Math.abs(value / column.divisor).toFixed(column.decimals);
    const [whole, fraction] = text.split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    return (value < 0 ? "−" : "") + grouped + (fraction ? "." + fraction : "");
  };
  const unit = (column) => (column.symbol ? (column.symbol === "/s" || column.symbol === "×" ? "" : " ") + column.symbol : "");
  const ratio = (value) => {
    const digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 0.1 ? 2 : 3;
    return value.toFixed(digits) + "×";
  };

  if (table) {
    sorting();
    baseline();
    filters();
  }
  scales();
  details();

  function sorting() {
    each("thead th[data-sort]", (head) => {
      const button = make("button", { type: "button" });
      const unitLine = head.querySelector(".unit");
      button.append(...[...head.childNodes].filter((node) => node !== unitLine));
      head.prepend(button);
      button.addEventListener("click", () => sort(head));
    }, table);
  }

  function sort(head) {
    const column = head.dataset.sort;
    const bestFirst = head.dataset.best === "higher" ? "descending" : "ascending";
    const other = bestFirst === "ascending" ? "descending" : "ascending";
    const current = head.getAttribute("aria-sort");
    const direction = !current ? bestFirst : current === bestFirst ? other : null;
    each("th[aria-sort]", (th) => th.removeAttribute("aria-sort"), table);
    if (direction) head.setAttribute("aria-sort", direction);
    each("tbody", (body) => {
      const rows = [...body.rows];
      const place = (row) => Number(row.dataset.place);
      const key = (row) => {
        if (column.startsWith("f")) return Number(row.dataset.levels.split(",")[Number(column.slice(1))]);
        const mean = data.cells[row.dataset.cell].mean[Number(column)];
        return mean === null ? undefined : mean;
      };
      rows.sort((a, b) => {
        if (!direction) return place(a) - place(b);
        const [x, y] = [key(a), key(b)];
        // Rows without a figure stay below.
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined) || place(a) - place(b);
        return (direction === "ascending" ? x - y : y - x) || place(a) - place(b);
      });
      body.append(...rows);
    }, table);
  }

  function controls() {
    let element = document.querySelector(".controls");
    if (!element) {
      element = make("div", { className: "controls" });
      table.closest(".scroll").before(element);
    }
    return element;
  }

  function filters() {
    if (data.factors.length === 0) return;
    const hidden = data.factors.map(() => new Set());
    data.factors.forEach((factor, index) => {
      if (factor.levels.length < 2 || factor.levels.length > 30) return;
      const set = make("fieldset", {}, make("legend", { textContent: "Rows shown" }));
      factor.levels.forEach((level, at) => {
        const box = make("input", { type: "checkbox", checked: true });
        box.addEventListener("change", () => {
          box.checked ? hidden[index].delete(at) : hidden[index].add(at);
          apply(hidden);
        });
        set.append(make("label", {}, box, level));
      });
      controls().append(make("details", {}, make("summary", { textContent: "Filter by " + factor.name }), set));
    });
  }

  function apply(hidden) {
    const off = new Set();
    for (const [cell, of] of Object.entries(data.cells)) {
      if (of.levels.some((level, index) => hidden[index].has(level))) off.add(cell);
    }
    each("tr[data-cell], svg [data-cell]", (element) => element.classList.toggle("off", off.has(element.dataset.cell)));
  }

  function baseline() {
    const names = data.subjects;
    if (names.length < 2) return;
    const select = make("select");
    names.forEach((name, index) => select.append(make("option", { value: index, textContent: name })));
    select.prepend(make("option", { value: "", textContent: "none" }));
    select.value = data.baseline === null ? "" : data.baseline;
    select.addEventListener("change", () => {
      const wanted = select.value === "" ? null : Number(select.value);
      each("tr[data-cell]", (row) => {
        const cell = data.cells[row.dataset.cell];
        const base = Object.values(data.cells).find((other) => other.panel === cell.panel && other.subject === wanted);
        each(".r", (line) => line.remove(), row);
        if (!base || base === cell) return;
        each(".c", (figure) => {
          const column = Number(/\bk(\d+)/.exec(figure.parentNode.className)[1]);
          const [mean, reference] = [cell.mean[column], base.mean[column]];
          if (mean !== null && reference > 0) figure.append(make("span", { className: "r", textContent: ratio(mean / reference) }));
        }, row);
      }, table);
      const note = document.getElementById("ratio-note");
      if (note) note.textContent = wanted === null ? "" : "× is the ratio of means to the baseline, " + names[wanted] + ".";
    });
    controls().append(make("label", { className: "stack" }, make("span", { textContent: "Baseline" }), select));
  }

  function scales() {
    each("figure[data-log]", (figure) => {
      const button = make("button", { type: "button", className: "switch", textContent: "logarithmic" });
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => {
        const log = button.getAttribute("aria-pressed") === "false";
        button.setAttribute("aria-pressed", String(log));
        button.textContent = log ? "linear" : "logarithmic";
        each("[data-scale]", (plot) => { plot.hidden = (plot.dataset.scale === "log") !== log; }, figure);
      });
      figure.querySelector("figcaption").prepend(button);
    });
  }

  function details() {
    const tip = make("div", { id: "tip", hidden: true });
    tip.setAttribute("role", "status");
    document.body.append(tip);
    // Our own details take the place of the browser's.
    each("svg [data-cell] > title", (title) => title.remove());
    const points = new WeakMap();
    const pointsOf = (path) => {
      if (!points.has(path)) {
        points.set(path, [...path.getAttribute("d").matchAll(/M(-?[\d.]+) (-?[\d.]+)/g)].map((m) => [Number(m[1]), Number(m[2])]));
      }
      return points.get(path);
    };
    const say = (event) => {
      const svg = event.target.closest("svg.fs");
      const group = svg && nearest(svg, event, pointsOf);
      if (!group) { tip.hidden = true; return; }
      const cell = data.cells[group.cell];
      const column = data.columns[group.column];
      const values = cell.values[group.column];
      const trials = values.map((value, index) => [value, index]).filter(([value]) => value !== null);
      const [value, index] = trials[group.index];
      const trial = cell.trials[index];
      tip.replaceChildren(
        make("strong", { textContent: cell.label }), make("br"),
        `${number(value, column)}${unit(column)}: trial ${index + 1} of ${cell.trials.length}, number ${trial[0] + 1} of the run`, make("br"),
        ...(trial[1] ? [`began ${trial[1][0]} s into the run, took ${trial[1][1]} s, seed ${trial[1][2]}`, make("br")] : []),
        `mean of the row ${number(cell.mean[group.column], column)}${unit(column)}`);
      tip.hidden = false;
      const width = tip.offsetWidth;
      const left = Math.min(event.pageX + 14, document.documentElement.clientWidth - width - 8);
      tip.style.left = Math.max(8, left) + "px";
      tip.style.top = event.pageY + 16 + "px";
    };
    each("figure svg.fs", (svg) => {
      if (!svg.querySelector("[data-cell]")) return;
      svg.addEventListener("pointermove", say);
      svg.addEventListener("pointerdown", say);
      svg.addEventListener("pointerleave", () => { tip.hidden = true; });
    });
  }

  // The point nearest to the pointer, within 14 pixels.
  function nearest(svg, event, pointsOf) {
    const matrix = svg.getScreenCTM();
    if (!matrix) return null;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    let best = null;
    let closest = 14 * 14;
    svg.querySelectorAll("[data-cell]:not(.off) > .fs-dots").forEach((path) => {
      pointsOf(path).forEach(([x, y], index) => {
        const distance = (x - at.x) ** 2 + (y - at.y) ** 2;
        if (distance < closest) {
          closest = distance;
          best = { cell: path.parentNode.dataset.cell, column: Number(path.parentNode.dataset.column), index };
        }
      });
    });
    return best;
  }
})();
