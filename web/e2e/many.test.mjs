// A team and a pipeline of 200: the graph shows all of them, with names that can be read.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { begin, openHouse, until, visit } from './house.mjs';

const many = Array.from({ length: 200 }, (_, index) => `researcher-${index + 1}`);
let house;

before(async () => {
  house = await openHouse();
  writeFileSync(
    join(house.dir, 'swarm/many.yaml'),
    [
      'version: "1"',
      'provider: scripted',
      'providers:',
      '  scripted: {kind: script, script: many-says.yaml}',
      'agents:',
      '  lead: {}',
      '  writer: {}',
      ...many.map((name) => `  ${name}: {}`),
      'edges:',
      ...many.map((name) => `  - "lead <-> ${name}"`),
      'tasks:',
      ...many.map((_, index) => `  chapter-${index + 1}: {agent: writer, prompt-string: Do it${index ? `, depends_on: [chapter-${index}]` : ''}}`),
      'pipelines:',
      `  chain: {tasks: [${many.map((_, index) => `chapter-${index + 1}`).join(', ')}]}`,
    ].join('\n'),
  );
  writeFileSync(join(house.dir, 'swarm/many-says.yaml'), '- {agent: lead, say: Thanks.}\n- {agent: writer, say: it is written}\n');
});

after(() => house.close());

const shapes = [
  ['a team', { goal: 'Read all of it', to: 'lead', mode: 'interactive' }, 202],
  ['a chain of tasks', { pipeline: 'chain' }, 200],
];

for (const [what, wanted, count] of shapes) {
  test(`${what} of ${count} is legible`, async () => {
    const run = await begin(house, { ...wanted, file: 'swarm/many.yaml' });
    for (const [width, height] of [[1280, 800], [3840, 2160]]) {
      const page = await visit(house, `/r/${run}`, { viewport: { width, height } });
      await until('all cards', async () => (await page.locator('.card').count()) === count);
      const cards = await page.locator('.card').evaluateAll((all) =>
        all.map((one) => {
          const box = one.getBoundingClientRect();
          const title = one.querySelector('.card-title');
          const zoom = box.width / one.offsetWidth;
          const size = parseFloat(getComputedStyle(title).fontSize);
          return { name: one.dataset.agent, left: box.left, top: box.top, right: box.right, bottom: box.bottom, letters: size * zoom, cut: title.scrollHeight > title.clientHeight + size / 2 || title.scrollWidth > title.clientWidth + size / 2 };
        }),
      );
      for (const one of cards) {
        assert.ok(one.left >= 0 && one.right <= width && one.top >= 0 && one.bottom <= height, `${one.name} is out of sight`);
        assert.ok(one.letters >= 9, `the name of ${one.name} has letters of ${one.letters} pixels`);
        assert.ok(!one.cut, `the name ${one.name} is cut`);
      }
      const overlaps = cards.flatMap((a, index) => cards.slice(index + 1).filter((b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom).map((b) => `${a.name} ${b.name}`));
      assert.deepEqual(overlaps, []);
      await page.locator('.card[data-agent$="-150"]').click();
      await page.locator('.inspector').waitFor();
      assert.deepEqual(page.problems, []);
      await page.context().close();
    }
  });
}
