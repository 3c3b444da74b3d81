package main

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sottodp/sotto/internal/readfile"
)

// cpuTime is the processor time of this process so far.
func cpuTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// usage is the peak memory of this process, in KiB, and its page faults. The peak in getrusage may be that of the
// parent.
func usage() (peak, faults int64) {
	status, err := readfile.All("/proc/self/status", readfile.Short)
	if err != nil {
		panic(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	fmt.Sscan(after, &peak)
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return peak, u.Minflt + u.Majflt
}
