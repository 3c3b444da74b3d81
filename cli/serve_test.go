package cli

import (
	"bufio"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/sottodp/sotto/internal/needs"
)

// The printed link lets in, once; a wrong one does not; a second server on its port is
// told so; Ctrl-C is the way to end.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	c := sotto(t, "serve", dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	link := strings.TrimSpace(line)
	address, _, _ := strings.Cut(link, "/?token=")
	client := &http.Client{Timeout: needs.Patience}
	for _, ask := range []struct {
		url  string
		want int
	}{{address + "/?token=0123456789abcdef0123456789abcdef", 403}, {address + "/", 403}, {link, 200}, {link, 403}} {
		r, err := client.Get(ask.url)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != ask.want {
			t.Errorf("%s: %d, want %d", ask.url, r.StatusCode, ask.want)
		}
	}
	port := address[strings.LastIndex(address, ":")+1:]
	second := sotto(t, "serve", dir, "--port", port)
	var said strings.Builder
	second.Stderr = &said
	if err := second.Run(); err == nil || second.ProcessState.ExitCode() != exitInput || !strings.Contains(said.String(), "--port: "+port+" is in use") {
		t.Errorf("a second one on port %s: %v\n%s", port, err, said.String())
	}
	if runtime.GOOS == "windows" {
		return // it has no such signal
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
}
