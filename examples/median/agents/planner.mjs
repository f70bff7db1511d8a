// The planner makes a numbered plan of the job that its prompt names.
import { prompt, fail } from "./prompt.mjs";

const job = prompt.match(/^Job: (.+)$/m);
if (!job) fail("the prompt names no job");

job[1].split(";").forEach((step, i) => console.log(`${i + 1}. ${step.trim()}`));
