package runlog

import "testing"

// TestSameBuild: builds are told apart by the commit in their version, and by all else that they say of themselves.
func TestSameBuild(t *testing.T) {
	this := Build{Version: "v0.0.0-20261128120000-0123456789ab", Go: "go1.26", Platform: "linux/amd64", Kernels: "avx2"}
	made := Info{Version: this.Version, Go: this.Go, Platform: this.Platform, Kernels: this.Kernels}
	if !sameBuild(&made, this) {
		t.Error("a build does not know its run")
	}
	for name, change := range map[string]func(*Info, *Build){
		"another version":  func(i *Info, _ *Build) { i.Version = "v0.0.0-20261128120000-ba9876543210" },
		"another Go":       func(i *Info, _ *Build) { i.Go = "go1.25" },
		"another platform": func(i *Info, _ *Build) { i.Platform = "linux/arm64" },
		"other kernels":    func(i *Info, _ *Build) { i.Kernels = "go" },
		"another program":  func(i *Info, _ *Build) { i.Build = "example.org/hospital v1.0.0" },
		"no version":       func(i *Info, b *Build) { i.Version, b.Version = "(devel)", "(devel)" },
		"changed files":    func(i *Info, b *Build) { b.Version += "+dirty"; i.Version = b.Version },
	} {
		i, b := made, this
		if change(&i, &b); sameBuild(&i, b) {
			t.Errorf("%s: the build that made the run", name)
		}
	}
}
