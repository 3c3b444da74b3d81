package cli

import (
	"strconv"

	"github.com/spf13/pflag"

	"github.com/sottodp/sotto/config"
)

// A number is the value of a flag. It is that of pflag, which takes 1e-400 as 0.
type number float64

func (n *number) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err == nil && config.OutOfRange(text) != "" {
		err = strconv.ErrRange
	}
	*n = number(v)
	return err
}

func (n *number) String() string { return strconv.FormatFloat(float64(*n), 'g', -1, 64) }

func (*number) Type() string { return "float64" }

// numberVar declares a flag for a number, as [pflag.FlagSet.Float64Var] does.
func numberVar(f *pflag.FlagSet, v *float64, name string, value float64, usage string) {
	*v = value
	f.Var((*number)(v), name, usage)
}
