package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the processor time of this process so far.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
