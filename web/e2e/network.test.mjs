// A short loss of the network: the page comes back to the same picture, with no gap and nothing twice.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { begin, call, openHouse, openWire, release, until, visit } from './house.mjs';

let house;
let team;
let page;
let wire;

before(async () => {
  house = await openHouse();
  wire = await openWire();
  team = await begin(house, { goal: 'Print Roman numerals', to: 'lead' });
  page = await visit(house, `/r/${team}/a/coder`, wire.options);
});

after(async () => {
  for (const agent of ['coder', 'tester']) release(house, agent);
  await house.close();
  wire.close();
});

const streams = (where, name) => where.locator(`.card[data-agent="${name}"][data-status="streaming"]`).waitFor();
const said = (where) => where.getByRole('log', { name: 'Output as it streams' });
const times = (text, words) => text.split(words).length - 1;

/** pictureOf is what a person sees of a run: the cards, the messages and the number of the newest event. */
async function pictureOf(where) {
  await where.goto(`${house.base}/r/${team}/a/tester`);
  return sightOf(where);
}

async function sightOf(where) {
  await streams(where, 'tester');
  await said(where).getByText('tester begins').waitFor();
  await where.keyboard.press('1');
  const cards = await where.locator('.card').evaluateAll((all) => all.map((one) => `${one.dataset.agent} ${one.dataset.status} ${one.querySelector('.card-foot')?.textContent}`).sort());
  const event = (await where.locator('.scrubber-label').textContent()).split(' · ')[0];
  await where.keyboard.press('3');
  await where.locator('.message').first().waitFor();
  const messages = await where.locator('.message').evaluateAll((all) => all.map((one) => one.ariaLabel));
  return { cards, event, messages };
}

test('what happens while the network is gone is there when it is back', async () => {
  await streams(page, 'coder');
  await said(page).getByText('coder begins').waitFor();
  wire.cut();
  await page.getByText('connection lost').waitFor();
  release(house, 'coder');
  await until('the turn of the tester', async () => (await call(house, 'GET', `/api/v1/runs/${team}/nodes`)).nodes.some((one) => one.name === 'tester' && one.status === 'streaming'));
  assert.equal(await page.locator('.card[data-agent="tester"][data-status="streaming"]').count(), 0);
  wire.mend();
  await streams(page, 'tester');
  await page.locator('.live-note').waitFor();
  await page.locator('.card[data-agent="tester"]').click();
  const other = await visit(house);
  const [here, there] = [await sightOf(page), await pictureOf(other)];
  assert.deepEqual(here, there);
  const { mail } = await call(house, 'GET', `/api/v1/runs/${team}/mail`);
  assert.equal(here.messages.length, mail.length, here.messages.join('\n'));
  await other.context().close();
});

test('a turn that streams over a loss says nothing twice', async () => {
  await page.keyboard.press('1');
  wire.cut();
  await page.getByText('connection lost').waitFor();
  wire.mend();
  await page.locator('.live-note').waitFor();
  await said(page).getByText('tester begins').waitFor();
  assert.equal(times(await said(page).textContent(), 'tester begins'), 1);
});

test('a connection on which nothing comes any more is made again', async () => {
  await page.clock.install();
  await page.reload();
  await page.locator('.live-note').waitFor();
  wire.deafen();
  await page.clock.fastForward(60_000);
  await page.getByText('connection lost').waitFor();
  wire.mend();
  await page.clock.fastForward(10_000);
  await page.locator('.live-note').waitFor();
  await said(page).getByText('tester begins').waitFor();
  assert.equal(times(await said(page).textContent(), 'tester begins'), 1);
});

test('readings that are lost while the stream goes on are given up, and made again', async () => {
  await page.context().close(); // its readings are not meant
  const other = await visit(house, `/r/${team}/a/tester`, wire.options);
  await other.clock.install();
  await other.reload();
  await said(other).getByText('tester begins').waitFor();
  await other.locator('.live-note').waitFor();
  wire.lose(/\/api\/v1\/runs\/[^/]+\?/);
  release(house, 'tester');
  await until('lost readings', () => wire.lost.some((url) => url.includes('lists=false')) && wire.lost.some((url) => url.includes('last=')));
  wire.mend();
  await other.clock.fastForward(70_000);
  await other.locator('.card[data-agent="tester"]:not([data-status="streaming"], [data-status="running"])').waitFor();
  const output = other.locator('.inspector pre', { hasText: 'tester is done' });
  await output.waitFor();
  assert.equal(times(await output.textContent(), 'tester begins'), 1);
  await other.context().close();
});
