import test from "node:test";
import assert from "node:assert/strict";
import { median } from "./median.mjs";

function is(got, want) {
  assert.equal(got, want, `it is ${got}, not ${want}`);
}

test("the median of one number", () => is(median([7]), 7));
test("the median of an odd count", () => is(median([3, 1, 2]), 2));
test("the median of an even count", () => is(median([4, 1, 3, 2]), 2.5));
test("the median of nothing", () => is(median([]), null));
test("the median of numbers with one and two digits", () => is(median([9, 10, 2]), 9));
test("the list is left as it was", () => {
  const list = [3, 1, 2];
  median(list);
  assert.deepEqual(list, [3, 1, 2], "it was sorted");
});
