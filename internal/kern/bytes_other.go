//go:build !amd64

package kern

func byteClasses(int) int { return 1 }

func (p *Words) dotFast([]float64, int, []byte, []float64, int, int) bool { return false }

func addBytesFast([]float64, int, int, [][ByteRows]int16, []byte, int, int, []float64, float64) bool {
	return false
}

func byteLargestFast([]float64) uint64                               { return 0 }
func byteWordsFast([]int16, int, []float64, float64) (int64, int64)  { return 0, 0 }
func byteWeightsFast([]int16, []float64, float64) (float64, float64) { return 0, 0 }
