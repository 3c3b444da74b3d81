package paper

import "golang.org/x/sys/windows"

// Processor is the processor time that this process has taken, in seconds.
func Processor() float64 {
	var created, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(windows.CurrentProcess(), &created, &ended, &kernel, &user) != nil {
		return 0
	}
	ticks := func(t windows.Filetime) uint64 { return uint64(t.HighDateTime)<<32 | uint64(t.LowDateTime) }
	return float64(ticks(kernel)+ticks(user)) / 1e7 // of 100 ns
}
