// Whatever agents say, the page shows it as characters, and stays quick.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { begin, call, openHouse, until, visit } from './house.mjs';

const markup = '<img src=x onerror="window.hacked=1">';
let house;
let run;
let page;

before(async () => {
  house = await openHouse();
  run = await begin(house, { goal: `${markup} goal`, to: 'hostile' });
  page = await visit(house);
  await page.evaluate(() => {
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
    }).observe({ type: 'longtask', buffered: true });
    window.jumps = [];
    new PerformanceObserver((list) => {
      for (const { value, hadRecentInput, sources } of list.getEntries()) if (!hadRecentInput) window.jumps.push(`${value.toFixed(4)} ${sources.map((one) => one.node?.className)}`);
    }).observe({ type: 'layout-shift' });
  });
});

after(() => house.close());

test('names and goals with markup are text in the list', async () => {
  await page.getByText(`${markup} goal`).first().waitFor();
  await page.locator(`[data-run="${run}"]`).click();
  await page.locator('.card[data-agent="hostile"]').click();
});

test('output with scripts, control characters and a line of 5 MB is text, and cut', async () => {
  await until('the end of the hostile turn', async () => (await call(house, 'GET', `/api/v1/runs/${run}/turns?agent=hostile`)).turns.some((turn) => turn.status === 'completed'));
  const more = page.getByRole('button', { name: /are not shown. Show more/ });
  await more.waitFor();
  assert.deepEqual(await page.evaluate(() => window.jumps), [], 'nothing jumped while the output came in');
  assert.ok((await page.locator('.inspector pre').first().textContent()).length < 200_000);
  while (await more.count()) await more.click();
  const output = page.locator('.inspector pre').first();
  await output.getByText('<script>window.hacked=1</script>').waitFor();
  const text = await output.textContent();
  assert.ok(text.includes('⟨202e⟩abc'), 'the mark that turns text around is visible');
  assert.ok(!/[\u0000-\u0008\u000b-\u001f]/.test(text), 'no control character is in the page');
  await page.getByRole('tab', { name: 'Mail' }).click();
  await page.getByText('svg onload').first().waitFor();
});

test('an artifact with a script is text, and so is its name', async () => {
  await page.keyboard.press('4');
  const artifact = page.getByRole('region', { name: 'Artifacts' }).locator('.artifact', { hasText: '<b>hostile.html' });
  await artifact.locator('summary').click();
  await artifact.getByText('<script>window.hacked=1</script> in an artifact').waitFor();
  await page.getByRole('region', { name: 'Topics' }).getByText('<script>window.hacked=1</script>').waitFor();
  await page.keyboard.press('1');
});

test('nothing of it ran, and every view still answers', async () => {
  for (const [key, view] of [['2', 'timeline'], ['3', 'conversation'], ['4', 'board'], ['1', 'graph']]) {
    await page.keyboard.press(key);
    await page.locator(`.view-${view}`).waitFor();
  }
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator('main img, main script, a[href^="javascript"]').count(), 0);
  assert.deepEqual(page.problems, []);
});

test('a page that is loaded in the middle has the same picture', async () => {
  const before = await page.locator('.card').count();
  await page.reload();
  await page.locator('.card[data-agent="hostile"]').waitFor();
  assert.equal(await page.locator('.card').count(), before);
});

/** The run takes as long as the machine needs for it: no figure is measured here. */
const patience = 900_000;

test('a run of 100,000 events is followed and looked back at, and no view freezes', async () => {
  const flood = await begin(house, { pipeline: 'floods' });
  await page.goto(`${house.base}/r/${flood}`);
  await page.locator('.card[data-agent="flood.1"]').click();
  const shown = async () => Number((await page.locator('.scrubber-label').textContent()).match(/event (\d+)/)[1]);
  for (const [index, view] of ['timeline', 'conversation', 'board', 'graph'].entries()) {
    const some = (index + 1) * 20_000;
    await page.waitForFunction((n) => Number(/event (\d+)/.exec(document.querySelector('.scrubber-label').textContent)[1]) >= n, some, { timeout: patience });
    await page.keyboard.press(String(((index + 1) % 4) + 1));
    await page.locator(`.view-${view}`).waitFor();
  }
  await page.locator('.top .badge', { hasText: 'completed' }).waitFor({ timeout: patience });
  assert.ok((await shown()) >= 99_000, `${await shown()} events`);
  await page.keyboard.press('2');
  await page.getByText(/^[\d,.]+ older turns are not shown/).waitFor();
  const bars = await page.locator('.turn-bar').count();
  assert.ok(bars >= 100 && bars <= 320, `${bars} turns are drawn`);
  await page.goto(`${house.base}/r/${flood}/t/flood.1/3/1?at=5000`);
  await page.getByText('the past, event 5000').waitFor();
  await page.getByRole('combobox', { name: 'Turn' }).getByRole('option', { name: /^flood\.1\/3\/1/ }).waitFor({ state: 'attached' });
  await page.getByRole('tab', { name: 'Output' }).click();
  await page.locator('.inspector pre', { hasText: '<img src=x onerror="window.hacked=1">' }).waitFor();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.deepEqual(page.problems, []);
});
