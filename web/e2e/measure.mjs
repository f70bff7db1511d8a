// Measures the page in a real browser, against a real server: node web/e2e/measure.mjs PROGRAM
// It prints the rows of docs/benchmarks.md that are about the page. Nothing is asserted.
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

if (process.argv[2]) process.env.SWARM_BIN = resolve(process.argv[2]);
const { begin, call, openHouse, until, visit } = await import('./house.mjs');

const speakers = 50;
const rounds = Number(process.env.ROUNDS ?? 100);
const events = Number(process.env.EVENTS ?? 100_000);
const workers = 20;
const pause = 50; // between two words of a speaker, in milliseconds

/** openModel is a model over HTTP. A speaker talks until it is told to stop, and the blinker until its card shows that it works. */
async function openModel() {
  const talking = new Set();
  const blinks = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    const { model } = JSON.parse(body);
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const say = (delta, finish_reason = null) => response.write(`data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model, choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    const end = () => {
      say({}, 'stop');
      response.end('data: [DONE]\n\n');
    };
    if (model === 'blink') {
      say({ role: 'assistant', content: `${randomUUID()} ${randomUUID()}` }); // an agent that repeats itself is paused
      blinks.push(end);
      return;
    }
    let words = 0;
    const timer = setInterval(() => say({ content: `word ${++words} of a long answer that goes on, ` }), pause);
    const stop = () => {
      talking.delete(stop);
      clearInterval(timer);
      end();
    };
    talking.add(stop);
    response.on('close', () => {
      talking.delete(stop);
      clearInterval(timer);
    });
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    talking: () => talking.size,
    blink: () => blinks.length > 0 && (blinks.shift()(), true),
    close() {
      for (const stop of talking) stop();
      server.close();
    },
  };
}

/** projectOf writes a folder with the agents that are measured. */
function projectOf(model) {
  const dir = mkdtempSync(join(tmpdir(), 'swarm-measured-'));
  mkdirSync(join(dir, 'swarm'));
  const names = Array.from({ length: workers }, (_, i) => `t${i}`);
  const agents = [`blinker: {provider: blinks}`, ...Array.from({ length: speakers }, (_, i) => `s${i}: {provider: speaks}`), ...names.map((name) => `${name}: {provider: scripted}`)];
  const file = [
    'version: "1"',
    'provider: scripted',
    'max_parallel: 100',
    'providers:',
    '  scripted: {kind: script, script: says.yaml}',
    `  speaks: {kind: openai, base_url: "${model.url}", models: {medium: talk}}`,
    `  blinks: {kind: openai, base_url: "${model.url}", models: {medium: blink}}`,
    'agents:',
    ...agents.map((one) => `  ${one}`),
    'edges: ["blinker <-> s0"]',
    'tasks:',
    ...names.map((name) => `  ${name}: {prompt-string: "Do ${name}"}`),
    'pipelines:',
    `  long: {tasks: [${names.join(', ')}], iterations: ${Math.ceil(events / workers / 4)}}`,
    `  short: {tasks: [t0, t1, t2]}`,
  ];
  writeFileSync(join(dir, 'swarm/swarm.yaml'), file.join('\n') + '\n');
  writeFileSync(join(dir, 'swarm/says.yaml'), names.map((name) => `- {task: ${name}, say: a short answer, sleep: ${process.env.SLEEP ?? 55}ms}\n`).join(''));
  return dir;
}

const quantile = (list, q) => list.toSorted((a, b) => a - b)[Math.min(list.length - 1, Math.floor(q * list.length))];
const ms = (n) => `${n < 100 ? n.toPrecision(3) : Math.round(n)} ms`;
const rows = [];
const add = (...row) => rows.push(row);

/** watchCard notes when the status of a card has changed on the screen. */
const watchCard = (page, agent) =>
  page.evaluate((name) => {
    window.seen = [];
    let last = '';
    // A card may be drawn anew when the graph moves, so the whole page is watched.
    new MutationObserver(() => {
      const status = document.querySelector(`.card[data-agent="${name}"]`)?.dataset.status ?? last;
      if (status === last) return;
      last = status;
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => window.seen.push({ busy: /running|streaming/.test(status), time: performance.timeOrigin + performance.now() });
        port2.postMessage(0); // after the frame is painted
      });
    }).observe(document.body, { subtree: true, attributeFilter: ['data-status'] });
  }, agent);

/** changes has the blinker take turns, and returns how long each start and end took to reach the screen. */
async function changes(house, page, team, model, count) {
  const before = (await call(house, 'GET', `/api/v1/runs/${team}?lists=false`)).run.seq;
  await page.evaluate(() => (window.seen = []));
  for (let i = 1; i <= count; i++) {
    await call(house, 'POST', `/api/v1/runs/${team}/messages`, { to: 'blinker', text: `Blink ${i}` });
    await page.waitForFunction((n) => window.seen.filter((one, at) => one.busy && !window.seen[at - 1]?.busy).length >= n, i, { polling: 20, timeout: 60_000 });
    await until('the request of the blinker', () => model.blink());
    await page.waitForFunction((n) => window.seen.filter((one, at) => !one.busy && window.seen[at - 1]?.busy).length >= n, i, { polling: 20, timeout: 60_000 });
  }
  const seen = await page.evaluate(() => window.seen);
  const told = [];
  for (let after = before; ; ) {
    const list = await call(house, 'GET', `/api/v1/runs/${team}/events?after=${after}&limit=1000&kind=turn_started,turn_ended`);
    told.push(...list.events.filter((one) => one.agent === 'blinker'));
    if (!list.next) break;
    after = list.next;
  }
  return told.map((event) => {
    const time = Date.parse(event.time);
    const shown = seen.find((one) => one.time >= time && one.busy === (event.kind === 'turn_started'));
    return shown.time - time;
  });
}

/** watchTasks notes the longest task of the page's main thread. */
const watchTasks = (page) =>
  page.evaluate(() => {
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
    }).observe({ type: 'longtask' });
  });
const longest = (page) => page.evaluate(() => [window.longest, (window.longest = 0)][0]);

/** heap returns the bytes of the page's objects that are in use. */
async function heap(page) {
  const client = await page.context().newCDPSession(page);
  await client.send('HeapProfiler.collectGarbage');
  const { usedSize } = await client.send('Runtime.getHeapUsage');
  await client.detach();
  return usedSize;
}

async function streaming(house, model) {
  const team = await begin(house, { goal: 'Blink', to: 'blinker', mode: 'interactive' });
  const page = await visit(house, `/r/${team}`);
  await until('the first turn of the blinker', () => model.blink());
  await page.locator('.card[data-agent="blinker"][data-status="idle"], .card[data-agent="blinker"][data-status="waiting"]').waitFor();
  await watchCard(page, 'blinker');
  const quiet = await changes(house, page, team, model, Math.ceil(rounds / 4));
  for (let i = 0; i < speakers; i++) await call(house, 'POST', `/api/v1/runs/${team}/messages`, { to: `s${i}`, text: 'Talk' });
  await until('all speakers', () => model.talking() === speakers);
  await page.locator('.card[data-agent="s0"]').click();
  await page.getByRole('log', { name: 'Output as it streams' }).getByText('word').first().waitFor();
  await watchTasks(page);
  const loud = await changes(house, page, team, model, rounds);
  add(`state change to pixel, ${speakers} agents stream`, ms(quantile(loud, 0.5)), `${ms(quantile(quiet, 0.5))} nobody streams`, `${ms(quantile(loud, 0.99))} p99`, '≤ 100 ms p99', quantile(loud, 0.99) <= 100);
  console.error(`longest task while ${speakers} agents stream: ${ms(await longest(page))}; slowest ${ms(Math.max(...loud))}`);
  await call(house, 'POST', `/api/v1/runs/${team}/cancel`, {});
  await page.context().close();
}

async function manyEvents(house) {
  const run = await begin(house, { pipeline: 'long' });
  const page = await visit(house, `/r/${run}/a/t0`);
  await page.locator('.card').first().waitFor();
  await watchTasks(page);
  const seqNow = async () => (await call(house, 'GET', `/api/v1/runs/${run}?lists=false`)).run;
  const reach = (n) =>
    until(`event ${n}`, async () => {
      for (let tries = 0; tries < 100; tries++) {
        const { seq, status } = await seqNow();
        if (seq >= n || status === 'completed') return true;
        await new Promise((done) => setTimeout(done, 200));
      }
      return false;
    });
  const most = {};
  let early;
  for (const [index, view] of ['graph', 'timeline', 'conversation', 'board', 'graph'].entries()) {
    await page.keyboard.press(String(['graph', 'timeline', 'conversation', 'board'].indexOf(view) + 1));
    await reach(((index + 1) * events) / 5);
    most[view] = Math.max(most[view] ?? 0, await longest(page));
    early ??= await heap(page);
    await longest(page); // without the collection that was asked for
  }
  await until('the end', async () => (await seqNow()).status === 'completed');
  const { seq, started, ended } = await seqNow();
  const rate = seq / ((Date.parse(ended) - Date.parse(started)) / 1000);
  const late = await heap(page);
  await page.context().close();
  const worst = Math.max(...Object.values(most));
  console.error(`longest tasks by view: ${JSON.stringify(most)}`);
  add(`longest task of the page, ${Math.round(rate).toLocaleString('en')} events/s`, ms(worst), '', ms(worst), '< 100 ms', worst < 100);
  add(`memory of the page after ${seq.toLocaleString('en')} events`, `${(late / 1e6).toFixed(1)} MB`, `${(early / 1e6).toFixed(1)} MB after a fifth of them`, `${(late / early).toFixed(2)}×`, 'bounded: ≤ 1.2×', late / early <= 1.2);
  return [run, seq];
}

/** firstView opens a run in a new browser context, and returns when its cards are painted, and when its lists are there. */
async function firstView(house, run) {
  const page = await visit(house, `/r/${run}`);
  await page.locator('.card').first().waitFor();
  const cards = await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => done(performance.now()))));
  await page.keyboard.press('2');
  await page.locator('.turn-bar').first().waitFor();
  const lists = await page.evaluate(() => performance.now());
  await page.context().close();
  return { cards, lists };
}

async function firstViews(house, long, seq) {
  const short = await begin(house, { pipeline: 'short' });
  await until('the short run', async () => (await call(house, 'GET', `/api/v1/runs/${short}`)).run.status === 'completed');
  const found = { long: [], short: [] };
  for (let i = 0; i < 5; i++) {
    found.long.push(await firstView(house, long));
    found.short.push(await firstView(house, short));
  }
  const median = (list, what) => quantile(list.map((one) => one[what]), 0.5);
  const slowest = Math.max(...found.long.map((one) => one.cards));
  const name = seq.toLocaleString('en');
  add(`first view of a run of ${name} events`, ms(median(found.long, 'cards')), `${ms(median(found.short, 'cards'))} a run of 3 turns`, `${ms(slowest)} slowest of 5`, '< 2 s', slowest < 2000);
  add(`first timeline of a run of ${name} events`, ms(median(found.long, 'lists')), `${ms(median(found.short, 'lists'))} a run of 3 turns`, ms(median(found.long, 'lists')), '', true);
}

const model = await openModel();
const project = projectOf(model);
const house = await openHouse(project);
const before = loadavg()[0];
try {
  if (!process.env.SKIP_STREAMING) await streaming(house, model);
  const [run, seq] = await manyEvents(house);
  await firstViews(house, run, seq);
} finally {
  model.close();
  await house.close();
  rmSync(project, { recursive: true, force: true });
}
console.log(`\n${new Date().toISOString().slice(0, 10)}, ${house.browser.version()}, load ${before.toFixed(1)} before, ${loadavg()[0].toFixed(1)} after\n`);
console.log('| work | p50 | floor, p50 | figure | reach | met |\n|---|---|---|---|---|---|');
for (const [work, p50, floor, figure, wanted, met] of rows) console.log(`| ${work} | ${p50} | ${floor} | ${figure} | ${wanted} | ${met ? 'yes' : '**no**'} |`);
process.exit(0);
