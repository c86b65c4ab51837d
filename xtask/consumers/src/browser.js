// Opens exports of a recording in Chromium: the page and the flame graph of halprof, and speedscope with its profile.
// node browser.js CHROMIUM FOLDER SCHEMAS; FOLDER has the exports, report.json of `client report --sort
// process,module,symbol`, and loads.json of `client mem report`; SCHEMAS are those of the documents in JSON.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const Ajv = require('ajv/dist/2020').default;
const Draft7 = require('ajv').default;
const puppeteer = require('puppeteer-core');

const [chromium, folder, schemas] = process.argv.slice(2);
const speedscope = path.join(path.dirname(require.resolve('speedscope/package.json')), 'dist/release');
const read = name => fs.readFileSync(path.join(folder, name), 'utf8');
const report = JSON.parse(read('report.json'));
const source = report.sources[0];

/** Opens a file. Errors in the console and requests for other files than `allowed` fail the test. */
async function open(browser, file, allowed = () => false) {
  const page = await browser.newPage();
  const wrong = [];
  page.on('console', message => message.type() === 'error' && wrong.push(message.text()));
  page.on('pageerror', error => wrong.push(String(error)));
  page.on('request', request => {
    const url = request.url();
    if (url !== `file://${file}` && !url.startsWith('data:') && !url.startsWith('blob:') && !allowed(url)) wrong.push(url);
  });
  await page.goto(`file://${file}`);
  return { page, end: async () => { assert.deepEqual(wrong, [], file); await page.close(); } };
}

async function testPage(browser) {
  const { page, end } = await open(browser, path.join(folder, 'x.html'));
  const cells = () => page.$$eval('#rows tbody tr', rows => rows.map(row => [...row.cells].map(cell => cell.textContent)));
  const headings = await page.$$eval('#rows th button', all => all.map(button => button.textContent));
  const cell = (row, heading) => row[headings.indexOf(heading)];
  const first = source.rows[0];
  const [shown] = await cells();
  assert.equal(cell(shown, 'Self'), `${(first.share * 100).toFixed(2)} %`);
  assert.equal(cell(shown, 'Samples').replaceAll(',', ''), String(first.samples));
  assert.deepEqual([cell(shown, 'Module'), cell(shown, 'Function')], [first.module, first.symbol]);

  const boxes = () => page.$$eval('#flames button', all => all.map(box => [box.textContent, box.offsetWidth]));
  const [, process] = await boxes();
  await page.click('#flames button:nth-child(2)');
  assert.equal((await boxes())[0][0], process[0], 'the box that was clicked is the root');
  assert.ok((await boxes())[0][1] > process[1], 'it is wider than before');
  assert.ok((await page.$eval('#path', path => path.textContent)).startsWith(`all > ${process[0]}: `));
  await page.click('#path button');
  assert.equal((await boxes())[0][0], 'all');

  await page.click(`#rows th:nth-child(${headings.indexOf('Function') + 1}) button`);
  const names = (await cells()).map(row => cell(row, 'Function'));
  assert.deepEqual(names, [...names].sort((one, other) => one.localeCompare(other)), 'in the order of the functions');
  await page.type('#search', 'library7.dll');
  const found = await cells();
  assert.ok(found.length > 0 && found.length < names.length && found.every(row => row.join(' ').includes('library7.dll')));
  assert.ok((await page.$$('.rates svg polyline')).length > 1, 'a line for each CPU');
  assert.match(await page.$eval('#account', account => account.textContent), /Lost +0 samples/);
  await end();
}

/** The page has the rows of `mem report`, and a search leaves those of code and data that match. */
async function testMemory(browser) {
  const [event] = JSON.parse(read('loads.json')).events;
  const { page, end } = await open(browser, path.join(folder, 'loads.html'));
  const rows = () => page.$$eval('#memory-tables table', tables => tables.map(table =>
    [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent))));
  const [sources, latencies, functions, lines] = await rows();
  const tenths = share => (share * 100).toFixed(1);
  const wanted = event.rows.map(row => [
    row.columns.source,
    `${tenths(row.share)} % \u00b1 ${tenths(row.share_error)}`,
    `${tenths(row.latency_share)} % \u00b1 ${tenths(row.latency_error)}`,
  ]);
  assert.deepEqual(sources.map(row => row.slice(0, 3)), wanted);
  assert.equal(latencies.flat().filter(text => /^\d+-\d+$/.test(text)).length, latencies.length);
  assert.deepEqual([functions.length, lines.length], [4, 200]);
  await page.type('#search', lines[0][0]);
  assert.deepEqual((await rows()).map(table => table.length), [sources.length, latencies.length, 0, 1]);
  await end();
}

async function testFlamegraph(browser) {
  const { page, end } = await open(browser, path.join(folder, 'x.svg'));
  const titles = await page.$$eval('title', all => all.map(title => title.textContent));
  assert.ok(titles.some(title => title.startsWith('all (')), titles[0]);
  assert.ok(titles.some(title => title.includes(source.rows[0].symbol)), source.rows[0].symbol);
  await end();
}

/** The page and the flame graph have the tree of calls of calls.folded. */
async function testCalls(browser) {
  const lines = read('calls.folded').trim().split('\n').map(line => line.split(/ (?=\d+$)/));
  const below = new Map();
  for (const [stack, events] of lines) {
    const names = stack.split(';');
    for (const name of new Set(names)) below.set(name, (below.get(name) ?? 0) + Number(events));
  }
  const [widest] = [...below].filter(([name]) => name.includes('+')).sort(([, one], [, other]) => other - one);
  const { page, end } = await open(browser, path.join(folder, 'calls.html'));
  const boxes = await page.$$eval('#flames button', all => all.map(box => [box.textContent, box.title, box.offsetTop]));
  const levels = new Set(boxes.map(([, , top]) => top)).size;
  assert.equal(levels, 14, 'all, the process, and twelve frames');
  const titles = boxes.filter(([name]) => name === widest[0]).map(([, title]) => title);
  const events = titles.map(title => Number(/, ([\d,]+) events/.exec(title)[1].replaceAll(',', '')));
  const shown = events.reduce((sum, one) => sum + one, 0);
  assert.ok(shown <= widest[1] && shown > widest[1] * 0.95, `${shown} of ${widest}: narrow boxes are not drawn`);
  await end();
  const graph = await open(browser, path.join(folder, 'calls.svg'));
  const depth = await graph.page.$$eval('#frames rect', all => new Set(all.map(box => box.getAttribute('y'))).size);
  assert.equal(depth, 14);
  await graph.end();
}

async function testSpeedscope(browser) {
  const schema = JSON.parse(fs.readFileSync(path.join(speedscope, 'file-format-schema.json'), 'utf8'));
  const profile = JSON.parse(read('x.speedscope.json'));
  const validate = new (String(schema.$schema).includes('2020') ? Ajv : Draft7)({ strict: false }).compile(schema);
  assert.ok(validate(profile), JSON.stringify(validate.errors));
  const opened = ['x.speedscope.json', 'x.txt', 'x.pb.gz', 'calls.pb.gz'].map(name => [name, '.dll']);
  const recorded = ['two-cpus.speedscope.json', 'two-cpus.txt', 'two-cpus.pb.gz'].map(name => [name, 'workload::functions::alpha()']);
  for (const [name, text] of [...opened, ...recorded]) {
    const { page, end } = await openSpeedscope(browser, name, read64(name));
    await page.waitForFunction(() => document.querySelector('canvas') !== null, { timeout: 30_000 });
    await page.keyboard.press('3'); // the sandwich view, a table of functions
    const shows = text => document.body.innerText.includes('Symbol Name') && document.body.innerText.includes(text);
    await page.waitForFunction(shows, { timeout: 30_000 }, text).catch(async error => {
      const shown = await page.evaluate(() => document.body.innerText);
      throw new Error(`${name}: ${shown.slice(0, 400)}`, { cause: error });
    });
    await end();
  }
  await testOrder(browser);
}

/** Speedscope takes a script in the order of time only: it refuses the same samples one CPU after the other. */
async function testOrder(browser) {
  const samples = read('two-cpus.txt').trimEnd().split('\n\n');
  const cpu = sample => /\[(\d+)\]/.exec(sample)[1];
  const sorted = [...samples].sort((one, other) => cpu(one).localeCompare(cpu(other)));
  assert.notDeepEqual(sorted, samples, 'the CPUs take turns');
  const { page } = await openSpeedscope(browser, 'by-cpu.txt', Buffer.from(`${sorted.join('\n\n')}\n`).toString('base64'));
  await page.waitForFunction(() => document.body.innerText.includes('Something went wrong'), { timeout: 30_000 });
  await page.close();
}

const read64 = name => fs.readFileSync(path.join(folder, name)).toString('base64');

/** Opens a file as speedscope's own command line does: a script passes it on. */
function openSpeedscope(browser, name, base64) {
  const script = path.join(folder, `${name}.js`);
  fs.writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(name)}, "${base64}")`);
  const index = `${path.join(speedscope, 'index.html')}#localProfilePath=${script}`;
  return open(browser, index, url => url.startsWith(`file://${speedscope}`) || url.endsWith(script));
}

/** The documents are valid for ajv with its own settings, which are strict. */
function testDocuments() {
  for (const kind of ['report', 'timeline', 'diff', 'annotate']) {
    const schema = JSON.parse(fs.readFileSync(path.join(schemas, `${kind}-1.json`), 'utf8'));
    const validate = new Ajv().compile(schema);
    const document = JSON.parse(read(`two-cpus.${kind}.json`));
    assert.equal(document.schema, `halprof.${kind}/1`);
    assert.ok(validate(document), `${kind}: ${JSON.stringify(validate.errors)}`);
    delete document.schema;
    assert.ok(!validate(document), `${kind}: the schema takes a document without its name`);
  }
}

(async () => {
  const browser = await puppeteer.launch({ executablePath: chromium, args: ['--no-sandbox', '--allow-file-access-from-files'] });
  try {
    await testPage(browser);
    await testMemory(browser);
    await testFlamegraph(browser);
    await testCalls(browser);
    await testSpeedscope(browser);
    testDocuments();
  } finally {
    await browser.close();
  }
  console.log('Chromium, speedscope and ajv opened the exports');
})();
