'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const view = { source: 0, zoom: [], sort: 'share', descending: true, search: '' };

const ROW = 22; // pixels from one row of boxes to the next
const LEAST = 0.001; // share of the width below which a box is not drawn

const LEGEND = 8; // most modules of the legend

const COLUMNS = [
  { key: 'latency', name: 'Latency', number: true, text: row => percent(row.latency) },
  { key: 'total', name: 'Children', number: true, text: row => percent(row.total) },
  { key: 'share', name: 'Self', number: true, text: row => percent(row.share) },
  { key: 'error', name: '+/-', number: true, wide: true, text: row => percent((row.high - row.low) / 2) },
  { key: 'samples', name: 'Samples', number: true, wide: true, text: row => grouped(row.samples) },
  { key: 'process', name: 'Process', text: row => row.process },
  { key: 'module', name: 'Module', text: row => row.module },
  { key: 'symbol', name: 'Function', text: row => row.symbol },
];

function percent(share) {
  return `${(share * 100).toFixed(2)} %`;
}

function grouped(number) {
  return Math.round(number).toLocaleString('en-US');
}

// All text comes from the recording, so it is only ever set as text.
function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

function matches(text) {
  return text.toLowerCase().includes(view.search);
}

function rowMatches(row) {
  return [row.process, row.module, row.symbol, ...row.inlined.flatMap(part => part.frames)].some(matches);
}

// The tree of calls, from the process over its outermost functions to the sampled ones. Without call stacks: the tree of
// process, module and functions. Each node has the events of what is below it.
function tree(source) {
  return source.calls.length > 0 ? callTree(source.calls) : rowTree(source);
}

function callTree(calls) {
  const root = { name: 'all', events: 0, children: new Map() };
  const nodes = [];
  for (const { caller, name, module, kernel, events } of calls) {
    const node = { name, module, kernel, events, children: new Map() };
    // Functions of one caller can have the same name.
    (nodes[caller] ?? root).children.set(nodes.length, node);
    nodes.push(node);
  }
  const add = node => {
    for (const child of node.children.values()) node.events += add(child);
    return node.events;
  };
  add(root);
  return root;
}

function rowTree(source) {
  const root = { name: 'all', events: 0, children: new Map() };
  const add = (names, events) => {
    let node = root;
    node.events += events;
    for (const [level, name] of names.entries()) {
      const module = level > 0 ? names[1] : '';
      if (!node.children.has(name)) node.children.set(name, { name, module, events: 0, children: new Map() });
      node = node.children.get(name);
      node.events += events;
    }
  };
  for (const { process, module, symbol, events, inlined } of source.rows) {
    for (const part of inlined) add([process, module, symbol, ...part.frames], part.events);
    const own = events - sum(inlined.map(part => part.events));
    if (own > 0) add([process, module, symbol], own);
  }
  for (const { process, module, rows, events } of source.omitted) {
    add([process, module, `${grouped(rows)} other ${rows === 1 ? 'function' : 'functions'}`], events);
  }
  return root;
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

function hue(name) {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)) % 360;
  return hash;
}

function drawFlames() {
  const source = data.sources[view.source];
  const flames = byId('flames');
  flames.replaceChildren();
  let node = tree(source);
  const all = node.events;
  const keys = [];
  const names = [];
  for (const key of view.zoom) {
    if (!node.children.has(key)) break;
    node = node.children.get(key);
    keys.push(key);
    names.push(node.name);
  }
  view.zoom = keys;
  drawPath(names, node, all);
  let depth = 0;
  let found = 0;
  const modules = new Map();
  const draw = (node, path, left, level, isFound) => {
    const width = node.events / top.events;
    if (width < LEAST) return;
    depth = Math.max(depth, level + 1);
    const where = node.kernel ? ' (kernel mode)' : '';
    const label = `${node.name}${where}: ${percent(node.events / source.events)}, ${grouped(node.events)} events`;
    const box = element('button', node.name, { title: label, 'aria-label': label, type: 'button' });
    box.style.left = `${left * 100}%`;
    box.style.width = `calc(${width * 100}% - 1px)`;
    box.style.top = `${level * ROW}px`;
    box.style.setProperty('--hue', hue(node.module || node.name));
    if (node.kernel) box.classList.add('kernel');
    const own = node.events - sum([...node.children.values()].map(child => child.events));
    if (node.module) modules.set(node.module, (modules.get(node.module) ?? 0) + own);
    const isMatch = view.search !== '' && (matches(node.name) || matches(node.module ?? ''));
    if (isMatch && !isFound) found += node.events;
    if (view.search) box.classList.add(isMatch ? 'found' : 'other');
    box.addEventListener('click', () => zoom(path));
    flames.append(box);
    const byEvents = [...node.children].sort(([, one], [, other]) => other.events - one.events);
    for (const [key, child] of byEvents) {
      draw(child, [...path, key], left, level + 1, isFound || isMatch);
      left += child.events / top.events;
    }
  };
  const top = node;
  if (top.events > 0) draw(top, keys, 0, 0, false);
  flames.style.height = `${Math.max(depth, 1) * ROW}px`;
  byId('found').textContent = view.search ? `Found in ${percent(source.events > 0 ? found / source.events : 0)} of the events.` : '';
  drawLegend(modules);
}

function drawLegend(modules) {
  const most = [...modules].sort(([, one], [, other]) => other - one).slice(0, LEGEND);
  const entries = most.map(([module]) => {
    const entry = element('li', module);
    entry.style.setProperty('--hue', hue(module));
    return entry;
  });
  byId('legend').replaceChildren(...entries);
}

function drawPath(names, node, all) {
  const path = byId('path');
  path.replaceChildren();
  if (names.length === 0) return;
  const reset = element('button', 'all', { type: 'button' });
  reset.addEventListener('click', () => zoom([]));
  path.append(reset, ` > ${names.join(' > ')}: ${percent(all > 0 ? node.events / all : 0)}`);
}

function zoom(path) {
  view.zoom = path;
  drawFlames();
}

// Without call stacks nothing is known of callers.
function columns() {
  const has = key => data.sources[view.source].rows.some(row => row[key] !== null);
  return COLUMNS.filter(({ key }) => !['latency', 'total'].includes(key) || has(key));
}

function drawHead() {
  const line = document.createElement('tr');
  for (const column of columns()) {
    const cell = element('th', '', { scope: 'col', class: className(column) });
    if (column.key === view.sort) cell.setAttribute('aria-sort', view.descending ? 'descending' : 'ascending');
    const button = element('button', column.name, { type: 'button' });
    button.addEventListener('click', () => sortBy(column));
    cell.append(button);
    line.append(cell);
  }
  byId('rows').tHead.replaceChildren(line);
}

function className(column) {
  return `${column.number ? 'number' : ''} ${column.wide ? 'wide' : ''}`.trim();
}

function sortBy(column) {
  view.descending = column.key === view.sort ? !view.descending : Boolean(column.number);
  view.sort = column.key;
  drawRows();
}

function value(row, key) {
  if (key === 'error') return row.high - row.low;
  return row[key];
}

function compare(one, other) {
  const [first, second] = [value(one, view.sort), value(other, view.sort)];
  const order = typeof first === 'number' ? first - second : first.localeCompare(second);
  return view.descending ? -order : order;
}

function drawRows() {
  drawHead();
  const source = data.sources[view.source];
  const rows = source.rows.filter(rowMatches).sort(compare);
  const line = (row, kind) => {
    const made = element('tr', '', { class: kind });
    for (const column of columns()) {
      const isEmpty = kind === 'inlined' && !['share', 'samples', 'symbol'].includes(column.key);
      const cell = element('td', isEmpty ? '' : column.text(row), { class: `${className(column)} ${column.key}` });
      if (column.key === 'share') cell.style.setProperty('--share', percent(row.share).replace(' ', ''));
      made.append(cell);
    }
    return made;
  };
  const part = ({ frames, ...numbers }) => line({ symbol: frames.join(' > '), ...numbers }, 'inlined');
  const lines = rows.flatMap(row => [line(row, 'function'), ...row.inlined.filter(one => one.share >= LEAST).map(part)]);
  byId('rows').tBodies[0].replaceChildren(...lines);
  const count = sum(source.omitted.map(group => group.rows));
  const share = sum(source.omitted.map(group => group.events)) / source.events;
  const left = count > 0 ? `${grouped(count)} more rows, ${percent(share)} of the events together, are not in this page.` : '';
  const found = view.search ? `${grouped(rows.length)} of ${grouped(source.rows.length)} rows match. ` : '';
  byId('omitted').textContent = found + left;
}

function drawRates() {
  const source = data.sources[view.source];
  const seconds = data.part_seconds;
  const most = Math.max(1, ...source.rates.flatMap(track => track.events));
  const figures = source.rates.map(track => {
    const figure = document.createElement('figure');
    const caption = document.createElement('figcaption');
    const peak = Math.max(...track.events) / seconds;
    caption.append(element('span', `CPU ${track.processor}`), element('span', `at most ${grouped(peak)} a second`));
    const chart = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    chart.setAttribute('viewBox', `0 0 ${Math.max(track.events.length - 1, 1)} 100`);
    chart.setAttribute('preserveAspectRatio', 'none');
    const line = document.createElementNS('http://www.w3.org/2000/svg', 'polyline');
    const point = (events, place) => `${place},${98 - 96 * events / most}`;
    line.setAttribute('points', track.events.map(point).join(' '));
    chart.append(line);
    const axis = element('div', '', { class: 'axis' });
    const end = seconds * track.events.length;
    axis.append(...[0, end / 2, end].map(time => element('span', `${Number(time.toPrecision(3))} s`)));
    figure.append(caption, chart, axis);
    return figure;
  });
  byId('rates').replaceChildren(...figures);
}

function drawSource(index) {
  view.source = index;
  view.zoom = [];
  if (!columns().some(column => column.key === view.sort)) view.sort = 'share';
  [...byId('events').children].forEach((button, place) => button.setAttribute('aria-pressed', place === index));
  byId('account').textContent = data.sources[index].account;
  const calls = data.sources[index].calls;
  byId('calls').textContent = calls.length > 0 ? ' Functions are below their callers; kernel mode is in italics.' : '';
  drawFlames();
  drawRows();
  drawRates();
}

function start() {
  document.title = `${data.title} - halprof`;
  byId('title').textContent = data.title;
  byId('heading').textContent = data.heading;
  data.sources.forEach((source, index) => {
    const button = element('button', source.name, { type: 'button' });
    button.addEventListener('click', () => drawSource(index));
    byId('events').append(button);
  });
  byId('search').addEventListener('input', event => {
    view.search = event.target.value.trim().toLowerCase();
    drawFlames();
    drawRows();
  });
  if (data.sources.length > 0) drawSource(0);
}

start();
