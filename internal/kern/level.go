package kern

import (
	"fmt"
	"os"
	"strings"
)

// A level is a set of kernels. Higher levels are faster; all give the same bits.
type level int

const (
	plain  level = iota // Go
	avx2                // AVX2, FMA and BMI2
	avx512              // AVX-512 F, CD, BW, DQ and VL too
)

var levelNames = []string{"go", "avx2", "avx512"}

func (l level) String() string { return levelNames[l] }

// Variable is the environment variable that forces a set of kernels: go, avx2 or
// avx512. It is read once, at start-up.
const Variable = "SOTTO_KERN"

// use is the set in force: the best one, or the one forced.
var use, useErr = choose(os.Getenv(Variable), best())

// choose is the level of a value of Variable on a machine whose best level is top. An
// impossible one leaves plain, and an error for the caller.
func choose(value string, top level) (level, error) {
	if value == "" {
		return top, nil
	}
	for l, name := range levelNames {
		if name != value {
			continue
		}
		if level(l) > top {
			return plain, fmt.Errorf("%s: found %q; this machine allows: %s", Variable, value,
				strings.Join(levelNames[:top+1], ", "))
		}
		return level(l), nil
	}
	return plain, fmt.Errorf("%s: found %q; choose %s", Variable, value, strings.Join(levelNames, ", "))
}

// Level names the kernels in force, or says why the value of Variable cannot be.
func Level() (string, error) { return use.String(), useErr }
