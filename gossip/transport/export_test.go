package transport

import "github.com/nats-io/nats-server/v2/server"

// Traffic returns the messages and bytes of all connections of owners with a hub, both ways.
func (h *Hub) Traffic() (messages, bytes int64) {
	z, err := h.s.Connz(&server.ConnzOptions{Username: true, Limit: 1 << 16})
	if err != nil {
		return 0, 0
	}
	for _, c := range z.Conns {
		if c.IP != "" && c.TLSVersion != "" { // not the hub's own
			messages, bytes = messages+c.InMsgs+c.OutMsgs, bytes+c.InBytes+c.OutBytes
		}
	}
	return messages, bytes
}
