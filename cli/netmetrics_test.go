//go:build linux

package cli

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/run/runlog"
)

// Hub and owners serve numbers of the schedule. An owner with timings serves those, too, and its run.json says so.
func TestMetricsOfOwners(t *testing.T) {
	t.Parallel()
	v := newVillage(t, "owners: 3, rows: 1300, graph: path, schedule: all, rounds: 10, seed: 5", time.Minute)
	hub := sotto(t, "hub", filepath.Join(v.d.Dir, transport.HubFile), "--dir", filepath.Join(v.d.Dir, "hub"), "--host", "127.0.0.1", "--port", "0", "--metrics", ":0")
	out, err := hub.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	metrics := start(t, hub)("metrics at ")
	url := make([]byte, 200)
	n, err := out.Read(url)
	if err != nil {
		t.Fatal(err)
	}
	v.url = string(url[:n-1])
	if text := get(t, metrics, "sotto_owners 3"); !slices.Equal(names([]byte(text)), []string{"sotto_connections", "sotto_info", "sotto_messages_stored", "sotto_owners"}) {
		t.Errorf("the hub serves %s", text)
	}
	var all []*exec.Cmd
	for i := range 3 {
		v.more = nil
		if i == 0 {
			v.more = []string{"--metrics", "127.0.0.1:0", "--metrics-timings"}
		}
		c, _ := v.owner(i, "")
		if i == 0 { // it waits for the others, and says where it serves
			c.Args = slices.DeleteFunc(c.Args, func(a string) bool { return a == "--quiet" })
			text := get(t, start(t, c)("metrics at "), `sotto_state{state="waiting"} 1`)
			if found := names([]byte(text)); !slices.Contains(found, "sotto_activations") || !slices.Contains(found, "process_cpu_seconds_total") {
				t.Errorf("the owner serves %q", found)
			}
		} else if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	for i, c := range all {
		if err := c.Wait(); err != nil {
			t.Fatalf("owner %d: %v", i, err)
		}
		info, err := runlog.ReadInfo(v.d.Owner(i, "part"))
		if err != nil || slices.Contains(info.Assertions, runlog.MetricsTimings) != (i == 0) {
			t.Errorf("owner %d: %v, %v", i, info, err)
		}
	}
	get(t, metrics, "sotto_messages_stored ")
}
