package transport

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// An owner names where the hub's answers go: an acknowledgement, or whatever it stored itself and has read out. They reach nobody but itself:
// they write no key of others, tell others nothing, and are no order to the store.
func TestSecurityOfAnswers(t *testing.T) {
	for name, limits := range layouts(4, 2*chunkFloats) {
		t.Run(name, func(t *testing.T) {
			o, all := limited(t, 4, limits)
			securityOfAnswers(t, start(t, o, all...), all)
		})
	}
}

func securityOfAnswers(t *testing.T, h *Hub, all []*Credentials) {
	n := &all[0].Network
	nc, _, err := connect(t, h.URL, n, all[0].Pass, nats.CustomInboxPrefix(n.inbox(0)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), patient)
	defer stop()
	sender, victim := dial(t, all[1]), dial(t, all[3])
	theirs := vectorKey(1, 2, 4, 0, 2)
	if _, err := sender.Put(ctx, theirs, []byte("theirs")); err != nil {
		t.Fatal(err)
	}
	spy, err := nc.SubscribeSync(n.inbox(0) + ".spy")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(subject, answer, text string) {
		t.Helper()
		if err := nc.PublishRequest(subject, answer, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	stored := 0
	answer := func(text, to string) { // has the hub say the text there
		t.Helper()
		stored++
		at := fmt.Sprint("0.model.x", stored)
		if _, err := nc.Request(n.subject("own", "in", at), []byte(text), patient); err != nil {
			t.Fatal(err)
		}
		ask("$JS.API.DIRECT.GET."+n.stream(n.streamOf("own.0."))+"."+n.subject("own", "in", at), to, "")
	}
	answer(commit, n.subject("dec", "in", "5.2.3"))
	answer(commit, n.subject("dec", "out", "6.2.3"))
	answer("text", n.subject("own", "in", "3.hello"))
	ask(n.subject("own", "in", "0.model.y"), n.subject("own", "in", "3.share"), "text")
	ask(n.subject("own", "in", "0.model.z"), n.subject("rel", "in", "3.2.7"), "text")
	consumer := fmt.Sprintf(`{"stream_name":%q,"config":{"durable_name":"spy","name":"spy","deliver_subject":"%s.spy","ack_policy":"none"}}`, n.stream(n.streamOf(theirs)), n.inbox(0))
	answer(consumer, "$JS.API.CONSUMER.DURABLE.CREATE."+n.stream(n.streamOf(theirs))+".spy")
	answer("", "$JS.API.STREAM.DELETE."+n.stream(n.streamOf(theirs)))
	if m, err := spy.NextMsg(time.Second); err == nil {
		t.Errorf("it reads what is for others: %s %q", m.Subject, m.Data)
	}
	for key, r := range map[string]*Client{decisionKey(5, 2, 3): victim, decisionKey(6, 2, 3): victim, ownKey(3, "hello"): victim, ownKey(3, "share"): victim, vectorKey(3, 2, 7, 0, 1): victim} {
		if v, err := r.Get(ctx, key); !errors.Is(err, ErrNone) {
			t.Errorf("%s is %q, %v", key, v, err)
		}
		if _, v, _ := r.live.find(key); v != nil {
			t.Errorf("%s is said to be %q", key, v)
		}
	}
	if v, err := sender.Get(ctx, theirs); err != nil || string(v) != "theirs" {
		t.Errorf("%s is %q, %v", theirs, v, err)
	}
}
