package swarm

import (
	"encoding/json"
	"math"
	"testing"
)

// No reported figure may make a sum smaller, overflow it, or make it impossible to store.
func TestUsageNeverShrinks(t *testing.T) {
	figures := []int64{0, 1, 500, math.MaxInt64, math.MaxInt64 - 1, -1, math.MinInt64, -1_000_000_000}
	dollars := []float64{0, 1, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), -5}
	sum := Usage{Calls: 3, InputTokens: 10, OutputTokens: 20, CachedTokens: 5, USD: 0.5}
	for _, n := range figures {
		for _, usd := range dollars {
			before := sum
			sum = sum.Plus(Usage{1, n, n, n, usd, false, n})
			if sum.InputTokens < before.InputTokens || sum.OutputTokens < before.OutputTokens || sum.CachedTokens < before.CachedTokens || sum.Tokens() < before.Tokens() ||
				!(sum.USD >= before.USD) || math.IsInf(sum.USD, 0) {
				t.Fatalf("%+v and %d, $%v make %+v", before, n, usd, sum)
			}
			if _, err := json.Marshal(sum); err != nil {
				t.Fatal(err)
			}
		}
	}
	if sum := (Usage{InputTokens: 5}).Plus(Usage{InputTokens: -7, USD: -1}); sum != (Usage{InputTokens: 5}) {
		t.Errorf("less than nothing counts: %+v", sum)
	}
	if left := (Usage{Calls: 1, InputTokens: 5}).Minus(Usage{Calls: 2, InputTokens: 7, USD: 1}); left != (Usage{}) {
		t.Errorf("less than nothing is left: %+v", left)
	}
}
