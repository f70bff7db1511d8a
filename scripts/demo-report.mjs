// Reads what `swarm show --json` says of a run of examples/median, checks that it went as it should, and says how the
// evaluator's words reached the coder. Ends with 1 when it did not go so.
import { readFileSync } from "node:fs";

const { turns } = JSON.parse(readFileSync(0, "utf8"));

function turn(id) {
  return turns.find((t) => t.id === id) ?? fail(`there is no turn ${id}`);
}

function fail(why) {
  console.error(`the demonstration went wrong: ${why}`);
  process.exit(1);
}

for (const [id, want] of [["tester/1/1", "failed"], ["tester/2/1", "completed"]]) {
  const { status } = turn(id);
  if (status !== want) fail(`${id} is ${status}, not ${want}`);
}

const heard = (id) => turn(id).spans.find((s) => s.from === "output" && s.name === "evaluator" && s.turn);
if (heard("coder/1/1")) fail("the first version was written with the evaluator's help");
const span = heard("coder/2/1") ?? fail("the evaluator's words did not reach the coder");
console.log(`Iteration 1 failed its tests, iteration 2 passed them. Of the ${turn("coder/2/1").prompt_bytes} bytes that the coder read in its`);
console.log(`second prompt, those from ${span.start} to ${span.end} are the output of ${span.turn}.`);
