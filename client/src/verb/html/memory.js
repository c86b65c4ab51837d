
// Where memory is slow. Only a page with accesses has this part.
const MEMORY_COLUMNS = [
  { key: 'share', error: 'share_error', name: 'Accesses' },
  { key: 'latency_share', error: 'latency_error', name: 'Load latency' },
  { key: 'samples', name: 'Samples', wide: true, text: grouped },
  { key: 'mean_latency', name: 'Mean', text: decimal },
  { key: 'p90_latency', name: '90 %', text: grouped },
  { key: 'locked_share', name: 'Locked', wide: true, text: tenths },
  { key: 'walked_share', name: 'Walked', wide: true, text: tenths },
].map(column => ({ number: true, ...column }));

// With as many places as `mem report` has.
function decimal(number) {
  return number.toLocaleString('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
}

function tenths(share) {
  return `${decimal(share * 100)} %`;
}

function memoryCell(row, column) {
  const value = row[column.key];
  if (!column.error) return element('td', value === null ? '' : column.text(value), { class: className(column) });
  const error = row[column.error];
  const cell = element('td', `${tenths(value)} `, { class: 'number bar' });
  cell.append(element('span', `\u00b1 ${decimal(error * 100)}`, { class: 'error' }));
  const place = share => `${(100 * Math.min(Math.max(share, 0), 1)).toFixed(2)}%`;
  cell.style.setProperty('--share', place(value));
  cell.style.setProperty('--low', place(value - error));
  cell.style.setProperty('--high', place(value + error));
  return cell;
}

function memoryTable({ heading, columns: all, names, rows, omitted, omitted_share }) {
  // A process that all rows have needs no column.
  const columns = all.filter(([key]) => key !== 'process' || new Set(rows.map(row => row.columns[key])).size > 1);
  const numbers = MEMORY_COLUMNS.filter(({ key }) => rows.some(row => row[key] !== null));
  const owners = new Set(rows.map(row => row.data_process).filter(Boolean));
  const text = (row, key) => row.columns[key] + (owners.size > 1 && row.data_process ? ` of ${row.data_process}` : '');
  const found = names ? rows.filter(row => columns.some(([key]) => matches(row.columns[key]))) : rows;
  const table = document.createElement('table');
  const head = element('tr', '');
  for (const [key, name] of columns) head.append(element('th', name, { scope: 'col', class: key }));
  for (const column of numbers) head.append(element('th', column.name, { scope: 'col', class: className(column) }));
  table.createTHead().append(head);
  const line = row => {
    const made = element('tr', '');
    for (const [key] of columns) made.append(element('td', text(row, key), { class: key }));
    made.append(...numbers.map(column => memoryCell(row, column)));
    return made;
  };
  table.createTBody().append(...found.map(line));
  const frame = element('div', '', { class: names ? 'scroll' : 'scroll whole' });
  frame.append(table);
  const parts = [element('h3', heading), frame];
  if (omitted > 0) {
    const share = percent(omitted_share);
    const text = `${grouped(omitted)} more rows, ${share} of the accesses together, are not in this page.`;
    parts.push(element('p', text, { class: 'hint' }));
  }
  return parts;
}

function drawMemory() {
  const { memory } = data.sources[view.source];
  byId('memory').hidden = !memory;
  if (!memory) return;
  byId('accesses').textContent = memory.account;
  byId('memory-tables').replaceChildren(...memory.tables.flatMap(memoryTable));
}

// After the listeners of the rest of the page, which change the view.
for (const button of byId('events').children) button.addEventListener('click', drawMemory);
byId('search').addEventListener('input', drawMemory);
drawMemory();
