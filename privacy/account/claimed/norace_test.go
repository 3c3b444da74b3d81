//go:build !race

package claimed

const underRace = false
