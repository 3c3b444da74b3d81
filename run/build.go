package run

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/run/runlog"
)

// Module is the path of this module.
const Module = "github.com/sottodp/sotto"

// ErrOtherBuild says that a run has a method or a model that this build does not have. Only a
// build that has it can verify or resume the run.
var ErrOtherBuild = errors.New("is not in this build of Sotto")

// Program names the running program, with its version, where it is another module's; otherwise it is empty.
func Program() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path != Module && info.Main.Path != "" {
		return info.Main.Path + " " + info.Main.Version
	}
	return ""
}

// OtherBuild is the error of a run whose method or model this build does not have.
func OtherBuild(info *runlog.Info, what, name string) error {
	maker := "another build of Sotto, version " + info.Version
	if info.Build != "" {
		maker = info.Build
	}
	return fmt.Errorf("%s: %s %q %w; the run was made by %s: use that program to verify or resume it", runlog.InfoFile, what, name, ErrOtherBuild, maker)
}

// knows reports an error where this build does not have the run's model.
func knows(info *runlog.Info, m ModelSpec) error {
	if !slices.Contains(model.Names(), m.Name) {
		return OtherBuild(info, "model", m.Name)
	}
	return nil
}
