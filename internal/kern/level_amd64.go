package kern

import "golang.org/x/sys/cpu"

func best() level {
	x := &cpu.X86
	switch {
	case !(x.HasAVX2 && x.HasFMA && x.HasBMI2):
		return plain
	case x.HasAVX512F && x.HasAVX512CD && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL:
		return avx512
	}
	return avx2
}
