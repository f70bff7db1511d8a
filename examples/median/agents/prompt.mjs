// What all four agents do first: read the prompt, and take out of it what another task said.
import { readFileSync } from "node:fs";

export const prompt = readFileSync(0, "utf8");

// outputOf is a task's output as it stands in the prompt, or "" when the task has not run yet: then the prompt holds a
// placeholder without the two lines around it.
export function outputOf(task) {
  const open = `--- Output from task "${task}" ---\n`;
  const close = `\n--- End output from task "${task}" ---`;
  const start = prompt.indexOf(open);
  const end = prompt.indexOf(close, start);
  return start < 0 || end < 0 ? "" : prompt.slice(start + open.length, end);
}

// fail ends the turn as a failure, and says why where people look for it.
export function fail(why) {
  console.error(why);
  process.exit(1);
}
