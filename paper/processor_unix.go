//go:build unix

package paper

import "golang.org/x/sys/unix"

// Processor is the processor time that this process has taken, in seconds: unlike that of a clock, a difference of two
// does not depend on what else the machine does.
func Processor() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
