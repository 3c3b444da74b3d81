package runlog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/sottodp/sotto/internal/kern"
)

// Module is the path of this module.
const Module = "github.com/sottodp/sotto"

// ErrOtherBuild says that a run has a method or a model that this build does not have. Only a
// build that has it can verify or resume the run.
var ErrOtherBuild = errors.New("is not in this build of Sotto")

// Program names the running program and its version if it belongs to another module; otherwise it returns "".
func Program() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path != Module && info.Main.Path != "" {
		return info.Main.Path + " " + info.Main.Version
	}
	return ""
}

// Version is the version of Sotto in the running program: [runlog.ReleasedAs], or what the module system says.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || ReleasedAs != "" {
		return cmp.Or(ReleasedAs, Devel)
	}
	m := &info.Main
	for _, d := range info.Deps { // the program is another module's
		if d.Path == Module {
			m = d
		}
	}
	if m.Replace != nil {
		m = m.Replace
	}
	return cmp.Or(m.Version, Devel)
}

// A Build describes the running program.
type Build struct {
	Version  string `json:"version"`
	Program  string `json:"program,omitempty"` // if it is another module's
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from files that are not all in the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"`
}

// ThisBuild describes the running program.
func ThisBuild() Build {
	set, _ := kern.Level() // the command has checked its variable
	b := Build{Version: Version(), Program: Program(), Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Kernels: set}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	return b
}

// SameBuild reports whether this program is the build that made the run: the same file, or one of
// the same version. It is false if neither is known.
func SameBuild(info *Info) bool {
	return info.Binary != "" && info.Binary == Binary() || sameBuild(info, ThisBuild())
}

func sameBuild(info *Info, b Build) bool {
	told := b.Version != Devel && !strings.Contains(b.Version, "+dirty")
	return told && info.Version == b.Version && info.Build == b.Program && info.Go == b.Go &&
		info.Platform == b.Platform && info.Kernels == b.Kernels
}

// Text prints it for people.
func (b Build) Text(w io.Writer) {
	commit := cmp.Or(b.Commit, "not known")
	if b.Modified {
		commit += ", modified"
	}
	if b.Program != "" {
		fmt.Fprintf(w, "Program    %s\n", b.Program)
	}
	fmt.Fprintf(w, "Version    %s\nCommit     %s\nGo         %s\nPlatform   %s\nKernels    %s\n", b.Version, commit, b.Go,
		b.Platform, b.Kernels)
}

// OtherBuild is the error of a run whose method or model this build does not have.
func OtherBuild(info *Info, what, name string) error {
	maker := "another build of Sotto, version " + info.Version
	if info.Build != "" {
		maker = info.Build
	}
	return fmt.Errorf("%s: %s %q %w; the run was made by %s: use that program to verify or resume it", InfoFile,
		what, name, ErrOtherBuild, maker)
}

// Kernels names the float kernels in use: their arithmetic, which all sets share, and the set. Other kernels
// may give other last bits.
func Kernels() string {
	set, _ := kern.Level()
	return "lanes8/" + set
}
