package run

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
		if !errors.Is(err, ErrOtherBuild) || !strings.Contains(err.Error(), `model "mine" is not in this build`) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := knows(&runlog.Info{}, ModelSpec{Name: "poisson"}); err != nil {
		t.Error(err)
	}
	if p := Program(); p != "" {
		t.Errorf("the program of this module is %q", p)
	}
}

// TestSameBuild: builds are told apart by the commit in their version, and by all else that they say of themselves.
func TestSameBuild(t *testing.T) {
	this := Build{Version: "v0.0.0-20261128120000-0123456789ab", Go: "go1.26", Platform: "linux/amd64", Kernels: "avx2"}
	made := runlog.Info{Version: this.Version, Go: this.Go, Platform: this.Platform, Kernels: this.Kernels}
	if !sameBuild(&made, this) {
		t.Error("a build does not know its run")
	}
	for name, change := range map[string]func(*runlog.Info, *Build){
		"another version":  func(i *runlog.Info, _ *Build) { i.Version = "v0.0.0-20261128120000-ba9876543210" },
		"another Go":       func(i *runlog.Info, _ *Build) { i.Go = "go1.25" },
		"another platform": func(i *runlog.Info, _ *Build) { i.Platform = "linux/arm64" },
		"other kernels":    func(i *runlog.Info, _ *Build) { i.Kernels = "go" },
		"another program":  func(i *runlog.Info, _ *Build) { i.Build = "example.org/hospital v1.0.0" },
		"no version":       func(i *runlog.Info, b *Build) { i.Version, b.Version = "(devel)", "(devel)" },
		"changed files":    func(i *runlog.Info, b *Build) { b.Version += "+dirty"; i.Version = b.Version },
	} {
		i, b := made, this
		if change(&i, &b); sameBuild(&i, b) {
			t.Errorf("%s: the build that made the run", name)
		}
	}
}
