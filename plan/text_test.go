package plan

import (
	"strings"
	"testing"

	"github.com/sottodp/sotto/privacy"
)

// TestPlanWords: text says where nothing is proven, and that another relation is another guarantee.
func TestPlanWords(t *testing.T) {
	epsilon := 0.5
	p := &Plan{Steps: 4, Delta: 1e-9, Growth: &Growth{Steps: []Point{{At: 2, Epsilon: &epsilon}, {At: 4}}}}
	var text strings.Builder
	p.printGrowth(&text)
	if !strings.Contains(text.String(), "not proven") {
		t.Error(text.String())
	}
	for adj, multiplier := range map[privacy.Adjacency]float64{privacy.ReplaceOne: 4, privacy.AddRemove: 16} {
		r := &Relation{Adjacency: adj, NoiseMultiplier: multiplier, Sampler: "Poisson samples", Translated: true, Opinion: Opinion{Epsilon: &epsilon}}
		if text := relationWords(r); !strings.Contains(text, "Not the same guarantee") || !strings.Contains(text, "multiplier of") || !strings.Contains(text, "on Poisson samples: ε = 0.5") {
			t.Error(text)
		}
	}
}
