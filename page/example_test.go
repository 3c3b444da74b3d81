package page

import (
	"os"
	"strings"
	"testing"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// Examples stand on the page as pictures of their pixels, with the guess, and the class where it is another.
func TestExamples(t *testing.T) {
	info := asked(t)
	info.Result.Test.Examples = []runlog.Example{
		{Width: 3, Pixels: []byte{0, 255, 255, 255, 0, 128}, Class: "seven", Guess: "seven", Confidence: 0.912},
		{Width: 2, Pixels: []byte{0, 0, 0, 0}, Class: "<script>", Guess: "four", Confidence: 0.5},
		{Width: 0, Pixels: []byte{1}, Class: "x", Guess: "x"}, {Width: 2, Pixels: []byte{1}, Class: "x", Guess: "x"},
	}
	page := build(t, ran(t, info, 3, privacy.Gaussian{Sigma: sigma}))
	wants(t, page, "seven (91.2 %)", "four (50 %), is <script>", "not private", "Test rows as they are")
	for _, path := range []string{`viewBox="0 0 3 2"`, `<path fill-opacity="1.00" d="M1 0h2v1h-2zM0 1h1v1h-1z"/>`, `<path fill-opacity="0.57" d="M2 1h1v1h-1z"/>`, `viewBox="0 0 2 2"`} {
		if !strings.Contains(page, path) {
			t.Errorf("%s is missing", path)
		}
	}
	if n := strings.Count(page, `class="example"`); n != 2 {
		t.Errorf("%d pictures", n)
	}
}

// WriteSummary says what a run came to. Write makes the whole page.
func ExampleWriteSummary() {
	r := &record.Record{
		Run:        record.Run{Method: "sgd", Outcome: "done", NoiseMultiplier: 4.5, TrainSeconds: 0.25},
		Protection: record.Protection{Whom: "any one patient"},
		Guarantee:  &record.Guarantee{Epsilon: 1, Delta: 1e-5, Relation: privacy.AddRemove},
		Course:     record.Course{Planned: 20, Steps: 20},
	}
	WriteSummary(os.Stdout, r, "run")
	// Output:
	// Guarantee  ε = 1, δ = 0.00001, add-or-remove: adding or removing any one patient changes the probability
	//            of any set of outcomes by at most a factor of 2.719, plus 0.00001
	// Noise      multiplier 4.5, 20 steps of sgd
	// Time       0.25 s of training
	// Model      run/model.json
	// Report     run/report.html
}
