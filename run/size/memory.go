package size

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/sottodp/sotto/internal/readfile"
)

// memory is how many bytes Linux gives this process: the machine's memory, or less where its control groups say so. It
// is 0 where that is not known, as on other systems.
func memory() int64 {
	return memoryOf(func(path string) string {
		f, err := readfile.OpenFile(path, os.O_RDONLY, 0) // the kernel says that such files have no bytes
		if err != nil {
			return ""
		}
		defer f.Close()
		b, _ := io.ReadAll(io.LimitReader(f, 1<<20))
		return string(b)
	})
}

func memoryOf(read func(path string) string) int64 {
	least := int64(math.MaxInt64)
	lower := func(bytes int64, err error) {
		if err == nil && bytes > 0 {
			least = min(least, bytes)
		}
	}
	_, rest, _ := strings.Cut(read("/proc/meminfo"), "MemTotal:")
	var kilobytes int64
	_, err := fmt.Sscan(rest, &kilobytes)
	if err != nil {
		return 0
	}
	lower(kilobytes<<10, nil)
	for line := range strings.Lines(read("/proc/self/cgroup")) {
		// number:controllers:path; version 2 has no controllers
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		root, file := "/sys/fs/cgroup", "memory.max"
		if fields[1] != "" {
			if !strings.Contains(","+fields[1]+",", ",memory,") {
				continue
			}
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) { // every group above limits, too
			lower(strconv.ParseInt(string(bytes.TrimSpace([]byte(read(path.Join(root, dir, file))))), 10, 64))
			if dir == "/" {
				break
			}
		}
	}
	return least
}
