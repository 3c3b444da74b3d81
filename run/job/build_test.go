package job

import (
	"errors"
	"strings"
	"testing"

	"github.com/sottodp/sotto/run/runlog"
)

// A run whose model this build does not have names the program that made it.
func TestOtherBuild(t *testing.T) {
	for build, want := range map[string]string{
		"":                        "made by another build of Sotto, version v1.2.3",
		"example.com/mine v0.4.0": "made by example.com/mine v0.4.0",
	} {
		err := knows(&runlog.Info{Version: "v1.2.3", Build: build}, ModelSpec{Name: "mine"})
		if !errors.Is(err, runlog.ErrOtherBuild) || !strings.Contains(err.Error(), `model "mine" is not in this build`) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := knows(&runlog.Info{}, ModelSpec{Name: "poisson"}); err != nil {
		t.Error(err)
	}
	if p := runlog.Program(); p != "" {
		t.Errorf("the program of this module is %q", p)
	}
}
