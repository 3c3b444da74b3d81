//go:build !amd64

package kern

func shortClasses(int) int { return 1 }

func (p *Shorts) dotFast([]float64, int, []int16, int, int, int) bool { return false }

func addShortsFast([]float64, int, []ShortLimbs, []int16, int, int, float64) bool { return false }

func shortSplitFast([]int16, int, int) bool { return false }
