package page

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run/runlog"
)

// scored are private figures, one of them of too few records.
func scored() *runlog.Private {
	figure := func(v, low, high float64) *runlog.Figure { return &runlog.Figure{Value: &v, Low: low, High: high} }
	few := runlog.Figure{High: 1, TooFew: true}
	clip := 0.0025
	return &runlog.Private{On: runlog.OnHoldout, Epsilon: 1, Delta: 1e-6, Level: 0.95, Records: *figure(6512, 6490, 6534), Clip: &clip,
		Accuracy: figure(0.8532, 0.8451, 0.8613), AUC: figure(0.902, 0.88, 0.92), LogLoss: figure(0.32, 0.29, 0.35),
		Classes:     []runlog.PrivateClass{{Class: "<=50K", Recall: *figure(0.93, 0.92, 0.94), Precision: *figure(0.88, 0.87, 0.89)}, {Class: ">50K", Recall: few, Precision: few}},
		Calibration: []runlog.PrivateBin{{From: 0.5, To: 0.75, Records: *figure(300, 290, 310), Share: *figure(0.6125, 0.58, 0.64)}, {From: 0.75, To: 1, Records: *figure(3, 0, 20), Share: few}},
		By:          "race", Groups: []runlog.PrivateGroup{{Level: "White <b>", Records: *figure(6000, 5990, 6010), Accuracy: figure(0.8499, 0.84, 0.86)}, {Level: "Black", Records: runlog.Figure{TooFew: true}}}}
}

// TestPrivateFigures: private figures stand first, marked, with their intervals; figures of too few records are said to be so.
func TestPrivateFigures(t *testing.T) {
	info := asked(t)
	info.Result.Private = scored()
	page := build(t, ran(t, info, 100, privacy.Gaussian{Sigma: sigma}))
	private, exact := strings.Index(page, "private: part of the guarantee above"), strings.Index(page, "not private: computed from the test rows")
	if private < 0 || exact < private {
		t.Errorf("private figures at %d, exact ones at %d", private, exact)
	}
	for _, want := range []string{"0.8451 to 0.8613", "recall of &gt;50K</th><td class=\"num\">" + tooFew, "White &lt;b&gt;", "0.8499", "0.5000 to 0.7500", "0.6125"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "0.7500 to 1.0000") {
		t.Error("a bin of too few records is shown")
	}
	info.Result.Test = nil
	if page := build(t, ran(t, info, 100, privacy.Gaussian{Sigma: sigma})); strings.Contains(page, "scored no test rows") || strings.Contains(page, "not private: computed") {
		t.Error("a page of private figures speaks of test rows")
	}

	info = asked(t)
	info.Result.Private = scored()
	var out bytes.Buffer
	WriteSummary(&out, record.Of(info, nil), "run")
	text := out.String()
	private, exact = strings.Index(text, "\nPrivate    accuracy"), strings.Index(text, "\nTest ")
	if private < 0 || exact < private || !strings.Contains(text, "recall of >50K         "+tooFew) || !strings.Contains(text, "about 6,512 records") {
		t.Errorf("the summary says:\n%s", text)
	}
	if Summary(record.Of(info, nil), "run")["private"] != info.Result.Private {
		t.Error("the summary for programs has no private figures")
	}
	out.Reset()
	WritePrivate(&out, scored())
	for _, want := range []string{"by race\n", "  White <b>            accuracy 0.8499     0.8400 to 0.8600, about 6,000 records\n", "  Black                " + tooFew + "\n", "0.0025"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the evaluation lacks %q:\n%s", want, out.String())
		}
	}
}
