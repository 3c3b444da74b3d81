//go:build !unix

package paper

import "time"

var began = time.Now()

// Processor is the time that this process has run, in seconds, where processor time is not measured.
func Processor() float64 { return time.Since(began).Seconds() }
