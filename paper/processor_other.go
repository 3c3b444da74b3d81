//go:build !unix && !windows

package paper

// Processor is 0 where processor time is not measured.
func Processor() float64 { return 0 }
