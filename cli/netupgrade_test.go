package cli

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sottodp/sotto/gossip/transport"
)

// A network that an earlier build founded, without limits, and whose hub and owners were killed in the midst of the training: this
// build's go on to the end, in the store as it is. The credentials of testdata/upgrade-network are good until November 2031.
func TestD4EarlierNetwork(t *testing.T) {
	t.Parallel()
	dir, command := earlierFiles(t, "upgrade-network")
	keys, err := transport.ReadHubKeys(filepath.Join(dir, "hub.json"))
	if err != nil || keys.Network.Limits != nil {
		t.Fatal(err)
	}
	hub := command("hub", "hub.json", "--dir", "hub", "--port", "0")
	out, err := hub.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hub.Process.Kill(); hub.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url = strings.TrimSpace(url)
	// The organizer's file serves, too: one of the owners comes with new credentials.
	if err := os.MkdirAll(filepath.Join(dir, "net"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "organiser.json"), filepath.Join(dir, "net", "organiser.json")); err != nil {
		t.Fatal(err)
	}
	if out, err := command("net", "invite", "south", "--dir", "net", "--out", "south.json").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	credentials := map[string]string{"north": "north/credentials.json", "south": "south.json"}
	var all sync.WaitGroup
	for owner, file := range credentials {
		all.Go(func() {
			c := command("node", "net.yaml", "--credentials", file, "--data", owner+"/rows.csv", "--dir", owner+"/part", "--ledger", owner+"/ledger.db", "--hub", url)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", owner, err, out)
			}
		})
	}
	all.Wait()
	for owner, file := range credentials {
		if out, err := command("verify", owner+"/part", "--ledger", owner+"/ledger.db").CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", owner, err, out)
		}
		out, err := command("net", "status", owner+"/part", "--credentials", file, "--hub", url).CombinedOutput()
		if err != nil || !strings.HasSuffix(string(out), "north: done\nsouth: done\n") {
			t.Errorf("%s: %v\n%s", owner, err, out)
		}
	}
}
